"""A world with prices: told as stories, rated from its log, and its rows linted."""

from decimal import Decimal
from typing import Any

from focus_data_toolkit.model.validator import lint_focus_1_4_structure

from connectors.memory.journal import MemoryJournal
from connectors.postgres.recorded import recorded
from domain import commands as c
from domain.facts.hardware import ReportStamp
from domain.ids import NodeId, TenantId
from domain.pricing import Rate, SkuMeter
from domain.record import Recorded
from domain.reservation import Reservation
from domain.timespan import Instant
from domain.units import Piece
from projections.focus import Row, focus_rows
from projections.folding import Ratings
from projections.invoicing import Invoice, invoices
from schemas.registry import registry
from tests import builders as b
from tests.world import World

RATES = (
    Rate(SkuMeter.RESERVED_USED, "2.5", discount_percent="20"),
    Rate(SkuMeter.RESERVED_UNUSED, "2.5", discount_percent="20"),
    Rate(SkuMeter.BORROWED, "1.2"),
    Rate(SkuMeter.OVERFLOW, "3.1"),
    Rate(SkuMeter.OVERRUN, "4"),
    Rate(SkuMeter.SHORTAGE, "2"),
)
TERMS = (
    Rate(SkuMeter.RESERVED_USED, "2.5", "", "40", 7 * 86_400),
    Rate(SkuMeter.CANCELLED, "2"),
    Rate(SkuMeter.CANCELLED, "1", "", "0", 2 * 86_400),
    Rate(SkuMeter.CANCELLED, "0", "", "0", 7 * 86_400),
    Rate(SkuMeter.SHRUNK, "1.5"),
    Rate(SkuMeter.GIVEN_BACK, "0.5"),
    Rate(SkuMeter.PREEMPTED, "3"),
)
"""Terms by notice."""


class BilledWorld(World):
    """A world with a price book, hardware that is told by hand, and charges."""

    def __init__(
        self,
        nodes: int = 2,
        rates: tuple[Rate, ...] = RATES,
        *,
        start_book: bool = True,
        **book: Any,
    ) -> None:
        super().__init__(nodes, ack_grace_seconds=60)
        self.reports = 0
        self.read: list[Recorded] = []
        if start_book:
            self.accept(c.PublishPriceBook("standard", "EUR", b.at(-9000), rates, **book))

    def stamp(self) -> ReportStamp:
        self.reports += 1
        return ReportStamp("test", "s1", self.reports)

    def pieces(self, which: Reservation, at: Instant) -> dict[NodeId, tuple[Piece, ...]]:
        """What a reservation is entitled to at an instant, by node."""
        found: dict[NodeId, tuple[Piece, ...]] = {}
        for holding in self.reservation(which).holdings:
            if holding.start <= at < holding.end:
                node = holding.piece.node_id
                found[node] = (*found.get(node, ()), holding.piece)
        return found

    def applied(self, which: Reservation, at: Instant) -> None:
        """The hardware hands a reservation's units over."""
        self.advance(at)
        for node, pieces in self.pieces(which, at).items():
            report = c.ReportApplied(node, which.id, pieces, at, self.stamp())
            self.accept(report, principal=b.SERVICE, at=at)

    def freed(self, which: Reservation, at: Instant) -> None:
        """The hardware has units of an ended reservation back."""
        self.advance(at)
        for node, pieces in self.sequencer.ledger.possessions.get(which.id, {}).items():
            report = c.ReportFreed(node, which.id, pieces, at, self.stamp())
            self.accept(report, principal=b.SERVICE, at=at)

    def ran(self, which: Reservation, start: Instant, end: Instant) -> None:
        """A reservation was handed over at an instant and freed at another one."""
        self.applied(which, start)
        self.freed(which, end)

    def observed(
        self,
        which: Reservation,
        pieces: tuple[Piece, ...],
        start: Instant,
        end: Instant,
        *,
        occupied: bool,
        stamp: ReportStamp | None = None,
    ) -> Any:
        """What telemetry says of some units."""
        report = c.ReportActivity(
            pieces[0].node_id,
            which.id,
            pieces,
            start,
            end,
            occupied,
            occupied,
            stamp or self.stamp(),
        )
        return self.send(report, principal=b.SERVICE)

    def log(self) -> list[Recorded]:
        fresh = MemoryJournal(self.store).read_all(len(self.read))
        self.read += [recorded(event, registry()) for event in fresh]
        return self.read

    def ratings(self) -> Ratings:
        return Ratings(self.log)

    def invoices(self, name: str = "a") -> list[Invoice]:
        """All periods of a billing account; every row of them passes the linter."""
        ratings = self.ratings()
        found = list(invoices(TenantId(name), ratings.head(), ratings.at))
        lint([row for invoice in found for row in focus_rows(invoice)])
        return found

    def rows(self, name: str = "a") -> list[Row]:
        return [row for invoice in self.invoices(name) for row in focus_rows(invoice)]

    def close_period(self, start: Instant, end: Instant, name: str = "a") -> Invoice:
        """Close and seal a period, as finance does."""
        from projections.closing import seal_of

        self.advance(end)
        self.accept(c.ClosePeriod(TenantId(name), start, end), principal=b.FINANCE)
        closing = self.invoices(name)
        invoice = next(i for i in closing if i.period.start == start)
        self.accept(seal_of(invoice), principal=b.FINANCE)
        return invoice


def lint(rows: list[Row]) -> None:
    """The rows pass the FOCUS 1.4 linter."""
    if not rows:
        return
    report = lint_focus_1_4_structure(
        "Cost and Usage", [{name: value or "" for name, value in row.items()} for row in rows]
    )
    assert report.ok, report.messages()[:10]


def total(rows: list[Row], column: str) -> Decimal:
    return sum((Decimal(row[column] or 0) for row in rows), Decimal(0))

"""Prices and periods: which price books there are, and how far each billing account is closed."""

import json
from typing import NamedTuple

from domain.facts import billing, pool
from domain.pricing import Rate
from domain.record import Recorded
from projections.table import Table


class PriceBookRow(NamedTuple):
    """One version of a price book; `rates` and `tenant_ids` are JSON."""

    book_id: str
    version: int
    currency: str
    start: int
    end: int
    tenant_ids: str
    rates: str
    unused_split: str
    corrects: int
    """0 when it corrects none."""
    seq: int


class PeriodRow(NamedTuple):
    """One period of a billing account that is closing or closed."""

    tenant_id: str
    start: int
    end: int
    zone: str
    settlement: str
    state: str
    cutoff_seq: int
    """The position of the fact that fixed it."""
    rows: int
    row_root: str
    billed: str
    currency: str


class PoolHourRow(NamedTuple):
    """What one state came to in one closed hour of a pool; all of its states are its capacity."""

    pool_id: str
    hour: int
    state: str
    gpu_microseconds: int
    cutoff_seq: int
    seq: int


class Billing:
    """What finance has decided."""

    name = "billing"
    version = 3

    def __init__(self) -> None:
        """Begin empty."""
        self.books = Table("price_book", PriceBookRow, 2)
        self.periods = Table("billing_period", PeriodRow, 2)
        self.pool_hours = Table("pool_hour", PoolHourRow, 3)
        self.tables: tuple[Table, ...] = (self.books, self.periods, self.pool_hours)

    def apply(self, recorded: Recorded) -> None:
        """Fold one fact."""
        match recorded.fact:
            case billing.PriceBookPublished() as fact:
                row = PriceBookRow(
                    fact.book_id,
                    fact.version,
                    fact.currency,
                    fact.start,
                    fact.end,
                    json.dumps(fact.tenant_ids),
                    json.dumps([_told(rate) for rate in fact.rates]),
                    fact.unused_split.value,
                    fact.corrects or 0,
                    recorded.seq,
                )
                self.books.put(row)
            case billing.PeriodClosing() as fact:
                bounds = (fact.tenant_id, fact.start, fact.end, fact.zone, fact.settlement.value)
                self.periods.put(PeriodRow(*bounds, "closing", recorded.seq, 0, "", "", ""))
            case billing.PeriodClosed() as fact:
                closing = self.periods.rows[fact.tenant_id, fact.start]
                assert isinstance(closing, PeriodRow)
                closed = closing._replace(
                    state="closed",
                    rows=fact.rows,
                    row_root=fact.row_root.hex(),
                    billed=fact.billed,
                    currency=fact.currency,
                )
                self.periods.put(closed)
            case pool.PoolHoursClosed() as fact:
                self._close_hours(fact, recorded.seq)
            case _:
                pass

    def _close_hours(self, fact: pool.PoolHoursClosed, seq: int) -> None:
        for hour in fact.hours:
            for part in hour.states:
                amounts = (part.gpu_microseconds, fact.cutoff_seq, seq)
                self.pool_hours.put(PoolHourRow(fact.pool_id, hour.start, part.state, *amounts))
                self.pool_hours.is_final((fact.pool_id, hour.start, part.state))

    def settle(self) -> None:
        """Nothing is left over."""


def _told(rate: Rate) -> dict[str, str | int]:
    return {
        "meter": rate.meter.value,
        "model": rate.model,
        "list_price": rate.list_price,
        "discount_percent": rate.discount_percent,
        "notice_seconds": rate.notice_seconds,
    }

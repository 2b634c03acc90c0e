"""Invoices: a billing account's periods with their rows, closed ones from their own cutoffs."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from domain.ids import ReservationId, TenantId
from domain.merkle import Tree, leaf_hash
from domain.periods import Period, PeriodState, Settlement
from domain.timespan import Instant, Timespan
from projections.charges import ChargeRow, Charges, corrections, originals
from projections.consumption import Booking, Terms

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Rated:
    """A rating of the log up to one position, and what charges say of their reservations."""

    seq: int
    until: Instant
    accounts: Mapping[TenantId, Charges]
    terms: Terms
    bookings: Mapping[ReservationId, Booking]

    def of(self, account_id: TenantId) -> Charges:
        """The charges of one account."""
        return self.accounts.get(account_id, {})

    @property
    def account_ids(self) -> list[TenantId]:
        """Every account that has charges or periods, by name."""
        return sorted(self.accounts.keys() | self.terms.periods.keys())


@dataclass(frozen=True, slots=True)
class Invoice:
    """One period of one billing account with its rows."""

    period: Period
    rows: tuple[ChargeRow, ...]
    rated: Rated
    id: str
    """The invoice's name; empty while its period is open."""


RatedAt = Callable[[int], Rated]
"""The rating of the log up to a position."""


def invoices(account_id: TenantId, head: Rated, rated_at: RatedAt) -> Iterator[Invoice]:
    """All periods of an account up to the head: those that were closed, then open months in UTC.

    An open month's rows are what they would be if it closed now.
    """
    before: Rated | None = None
    past: list[Timespan] = []
    for period in head.terms.periods.get(account_id, ()):
        rated = rated_at(period.cutoff_seq)
        yield invoice_of(period, rated, before, past)
        before, past = rated, [*past, period.span]
    for number, period in enumerate(_open_months(account_id, head, past)):
        corrected = past if number == 0 else []
        yield invoice_of(period, head, before, corrected, is_first=not past and number == 0)


def invoice_of(
    period: Period,
    rated: Rated,
    before: Rated | None,
    past: list[Timespan],
    *,
    is_first: bool = True,
) -> Invoice:
    """One period: its originals, and the corrections of all those in the past.

    The first period of an account has all that was before it, too.
    """
    span = period.span
    reach = Timespan(Instant(0), span.end) if is_first and not past else span
    rows = originals(rated.of(period.tenant_id), span, reach)
    for place, corrected in enumerate(past):
        assert before is not None, "what is corrected was rated before"
        had = corrected if place else Timespan(Instant(0), corrected.end)
        old, new = (r.of(period.tenant_id) for r in (before, rated))
        rows += corrections(old, new, corrected, span, had)
    return Invoice(period, tuple(rows), rated, _invoice_id(period))


def _invoice_id(period: Period) -> str:
    if period.state is PeriodState.OPEN:
        return ""
    day = _EPOCH + timedelta(microseconds=period.start)
    return f"{period.tenant_id}-{day:%Y%m%dT%H%M%SZ}"


def _open_months(account_id: TenantId, head: Rated, past: list[Timespan]) -> Iterator[Period]:
    starts = [key.start for key in head.of(account_id)]
    if past:
        start = past[-1].end
    elif starts:
        start = _month(min(starts))
    else:
        return
    while start <= head.until:
        end = _month(start, 1)
        yield Period(account_id, start, end, "UTC", Settlement.CHARGEBACK, PeriodState.OPEN)
        start = end


def _month(at: int, later: int = 0) -> Instant:
    """The first instant of the month around an instant, or of a later one."""
    day = (_EPOCH + timedelta(microseconds=at)).replace(day=1, hour=0, minute=0, second=0)
    months = day.year * 12 + day.month - 1 + later
    day = day.replace(year=months // 12, month=months % 12 + 1, microsecond=0)
    return Instant((day - _EPOCH) // timedelta(microseconds=1))


def root_of(rows: Iterable[bytes]) -> bytes:
    """The root of a Merkle tree (RFC 6962) over rows, in their order."""
    tree, _ = Tree().grown([leaf_hash(row) for row in rows])
    return tree.root

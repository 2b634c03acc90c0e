"""Invoices: a billing account's periods with their rows, closed ones from their own cutoffs."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from domain.ids import ReservationId, TenantId
from domain.merkle import Tree, leaf_hash
from domain.periods import Period, PeriodState, Settlement
from domain.timespan import Instant, Timespan
from projections.charges import ChargeRow, Charges, corrections, originals
from projections.consumption import Booking
from projections.terms import Terms

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


@dataclass(frozen=True, slots=True)
class Outline:
    """What makes an invoice before anything is rated: its period and the positions it is rated to."""

    period: Period
    seq: int
    before_seq: int
    """Up to where what it corrects was billed; 0 when it corrects nothing."""
    past: tuple[Timespan, ...]
    """The closed periods that it corrects, in order."""
    is_first: bool
    """Whether it has all that was before it, too."""

    @property
    def reach(self) -> Timespan:
        """The time of its originals."""
        return Timespan(Instant(0), self.period.end) if self.is_first else self.period.span


def outline(
    account_id: TenantId, terms: Terms, seq: int, until: Instant, first: Instant
) -> list[Outline]:
    """The periods of an account up to a head: those that were closed, then open months in UTC.

    `first` is an instant before which it was charged nothing.
    """
    found: list[Outline] = []
    past: tuple[Timespan, ...] = ()
    before = 0
    for period in terms.periods.get(account_id, ()):
        found.append(Outline(period, period.cutoff_seq, before, past, not past))
        before, past = period.cutoff_seq, (*past, period.span)
    start = past[-1].end if past else _month(first)
    is_first = True
    while start <= until:
        end = _month(start, 1)
        period = Period(account_id, start, end, "UTC", Settlement.CHARGEBACK, PeriodState.OPEN)
        corrected = past if is_first else ()
        before_seq = before if corrected else 0
        found.append(Outline(period, seq, before_seq, corrected, is_first and not past))
        start, is_first = end, False
    return found


def invoices(account_id: TenantId, head: Rated, rated_at: RatedAt) -> Iterator[Invoice]:
    """All periods of an account up to the head: those that were closed, then open months in UTC.

    An open month's rows are what they would be if it closed now.
    """
    charged = [key.start for key in head.of(account_id)]
    if not charged and not head.terms.periods.get(account_id):
        return
    first = min(charged, default=Instant(0))
    for each in outline(account_id, head.terms, head.seq, head.until, first):
        rated = head if each.seq == head.seq else rated_at(each.seq)
        before = rated_at(each.before_seq) if each.before_seq else None
        yield invoice_of(each, rated, before)


def invoice_of(which: Outline, rated: Rated, before: Rated | None) -> Invoice:
    """One period: its originals, and the corrections of those in the past."""
    period = which.period
    rows = originals(rated.of(period.tenant_id), period.span, which.reach)
    for place, corrected in enumerate(which.past):
        assert before is not None, "what is corrected was rated before"
        had = corrected if place else Timespan(Instant(0), corrected.end)
        old, new = (r.of(period.tenant_id) for r in (before, rated))
        rows += corrections(old, new, corrected, period.span, had)
    return Invoice(period, tuple(rows), rated, _invoice_id(period))


def _invoice_id(period: Period) -> str:
    if period.state is PeriodState.OPEN:
        return ""
    day = _EPOCH + timedelta(microseconds=period.start)
    return f"{period.tenant_id}-{day:%Y%m%dT%H%M%SZ}"


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

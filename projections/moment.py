"""A past moment: who was entitled to what, under which quota, at which use and cost.

Two times are apart: `as_of` is the moment that is asked about; what is known of it are the facts that
the caller gives, which may be those of then or those of now. Holders are told by entitlement at the
moment; use and cost by the facts that had happened by then, whenever they were recorded.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from domain.record import Recorded
from domain.timespan import Instant
from projections.calendar import Calendar, CalendarRow
from projections.charges import by_account
from projections.consumption import Consumption
from projections.fleet import Fleet, GrantRow
from projections.folding import Ratings
from projections.rating import rate

Known = Callable[[], Iterable[Recorded]]
"""Reads the facts that are known, from the first one, each time that it is called."""


@dataclass(frozen=True, slots=True)
class Entitlement:
    """A grant in force, and how much its tenant itself held at the moment."""

    grant: GrantRow
    held_milli: int


@dataclass(frozen=True, slots=True)
class Moment:
    """What facts say of one moment."""

    as_of: Instant
    seq: int
    """The last fact that was known."""
    holders: tuple[CalendarRow, ...]
    quota: tuple[Entitlement, ...]
    usage: Mapping[tuple[str, str, str], int]
    """GPU-microseconds up to the moment by pool, tenant and state."""
    charges: Mapping[tuple[str, str], Decimal]
    """Exact cost up to the moment, at contracted prices, by account and currency."""


def moment_of(
    known: Known, as_of: Instant, now: Instant, hear: Callable[[Recorded], None]
) -> Moment:
    """The moment that the known facts tell of; they are read twice, and `hear` hears each once.

    Nothing has been used or charged behind `now`, or behind the last fact where that is later.
    """
    ratings = Ratings(lambda: (entry for entry in known() if entry.occurred_at <= as_of))
    calendar, fleet, consumption = Calendar(), Fleet(), ratings.begun()
    seq = 0
    for entry in known():
        seq = entry.seq
        hear(entry)
        calendar.apply(entry)
        fleet.apply(entry)
        if entry.occurred_at <= as_of:
            consumption.apply(entry)
    cost = _cost(consumption, min(as_of, max(now, consumption.last)))
    holders = tuple(
        row
        for row in sorted(CalendarRow(*row) for row in calendar.table)
        if row.start <= as_of < row.end
    )
    return Moment(as_of, seq, holders, _quota(fleet, holders, as_of), _used(consumption), cost)


def _quota(fleet: Fleet, holders: Iterable[CalendarRow], as_of: Instant) -> tuple[Entitlement, ...]:
    held: dict[tuple[str, str], int] = defaultdict(int)
    for row in holders:
        held[row.tenant_id, row.pool_id] += row.width_milli
    grants = sorted(GrantRow(*row) for row in fleet.grants)
    return tuple(
        Entitlement(grant, held[grant.tenant_id, grant.pool_id])
        for grant in grants
        if grant.start <= as_of < grant.end
    )


def _used(consumption: Consumption) -> dict[tuple[str, str, str], int]:
    found: dict[tuple[str, str, str], int] = defaultdict(int)
    for pool_id, _, tenant_id, state, amount in consumption.usage:
        found[pool_id, tenant_id, state] += amount
    return dict(sorted(found.items()))


def _cost(consumption: Consumption, until: Instant) -> dict[tuple[str, str], Decimal]:
    charges = by_account(rate(consumption.lines(until), consumption.terms))
    found: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for account_id, of_account in charges.items():
        for charge in of_account.values():
            found[account_id, charge.price.currency] += charge.contracted_cost
    return dict(sorted(found.items()))

"""The queue of a pool: whose turn it is, on what grounds, and when each could start as things stand."""

from collections.abc import Callable
from dataclasses import dataclass

from domain.fairness import Waiting, queue_of
from domain.fleet_state import Pool
from domain.ids import TenantId
from domain.timespan import Instant, Timespan
from solvers.nearest import is_yes, later
from solvers.trial import Copy, Want, trial

ESTIMATES_MAX = 100
"""Of how many of a queue a start is estimated at once."""


@dataclass(frozen=True, slots=True)
class Place:
    """One who waits. `start_estimate` is when it fits without moving anyone, None when that is not known."""

    waiting: Waiting
    start_estimate: Instant | None


def queue(copy: Copy, pool: Pool, may_see: Callable[[TenantId], bool]) -> tuple[Place, ...]:
    """Those who wait in a pool and may be seen, in their order among all."""
    seen = [
        each
        for each in queue_of(copy.ledger, pool, copy.now)
        if may_see(each.reservation.tenant_id)
    ]
    return tuple(
        Place(each, _start(copy, pool, each) if number < ESTIMATES_MAX else None)
        for number, each in enumerate(seen)
    )


def _start(copy: Copy, pool: Pool, each: Waiting) -> Instant | None:
    """Its own start where it fits by now, else the first later one."""
    asked = each.reservation
    span = Timespan(asked.start, asked.end)
    want = Want(asked.tenant_id, pool, asked.klass, asked.size, asked.shape, span)
    with trial(copy) as t:
        if is_yes(t, want):
            return asked.start
        found = later(t, want)
    return found.span.start if found is not None else None

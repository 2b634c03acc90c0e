"""Whose turn it is: dominant shares of a pool over a window of usage that decays."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from domain.fleet_state import Pool
from domain.ids import ReservationId, TenantId
from domain.ledger import Ledger
from domain.reservation import Reservation
from domain.sizes import ReservationClass
from domain.states import RUNNING, ReservationState
from domain.timespan import MICROSECONDS, Instant
from domain.units import MILLI_PER_GPU

ALL = "gpus"
"""The resource that every reservation uses; each model that one insists on is another."""

PARTS_PER_MILLION = 1_000_000

_RAN = RUNNING | {
    ReservationState.ENDED,
    ReservationState.GIVEN_BACK,
    ReservationState.PREEMPTED,
    ReservationState.RELEASED,
}


@dataclass(frozen=True, slots=True)
class Share:
    """What a tenant had of a pool lately, in GPU-seconds by resource; what is older counts for less.

    `capacity` is what somebody would have who always had all of it. The dominant share is that
    of the resource of which the tenant had most, in parts per million.
    """

    used: Mapping[str, int] = field(default_factory=dict)
    capacity: Mapping[str, int] = field(default_factory=dict)

    @property
    def dominant(self) -> str:
        """The resource of which it had most."""
        return max(self.capacity, key=lambda name: (self._of(name), name), default=ALL)

    @property
    def dominant_ppm(self) -> int:
        """How much of it."""
        return self._of(self.dominant)

    def _of(self, name: str) -> int:
        whole = self.capacity.get(name, 0)
        return self.used.get(name, 0) * PARTS_PER_MILLION // whole if whole else 0


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request in the queue. `place` counts all before it, `position` those of its class, from 1."""

    reservation: Reservation
    place: int
    position: int
    share: Share | None
    """None where the pool goes by arrival."""


def queue_of(ledger: Ledger, pool: Pool, now: Instant) -> tuple[Waiting, ...]:
    """Who waits in a pool, in order: by dominant share where its policy asks for that, then by arrival."""
    waiting = [ledger.reservations[name] for name in pool.queued]
    shares: dict[TenantId, Share] = {}
    if pool.policy.fairness_half_life_seconds and waiting:
        shares = shares_of(ledger, pool, {each.tenant_id for each in waiting}, now)
    nothing = Share()
    waiting.sort(
        key=lambda r: (
            shares.get(r.tenant_id, nothing).dominant_ppm,
            r.waits_since or 0,
            r.id,
        )
    )
    counts: dict[ReservationClass, int] = {}
    found: list[Waiting] = []
    for place, each in enumerate(waiting):
        counts[each.klass] = counts.get(each.klass, 0) + 1
        found.append(Waiting(each, place, counts[each.klass], shares.get(each.tenant_id)))
    return tuple(found)


def shares_of(
    ledger: Ledger, pool: Pool, tenants: Iterable[TenantId], now: Instant
) -> dict[TenantId, Share]:
    """The share of each tenant: of what its reservations were entitled to, up to now."""
    half_life = pool.policy.fairness_half_life_seconds
    sums: dict[TenantId, dict[str, float]] = {tenant: {} for tenant in tenants}
    ended: dict[ReservationId, Instant] = {name: at for at, name in ledger.over}
    for each in ledger.reservations.values():
        used = sums.get(each.tenant_id)
        if used is None or each.pool_id != pool.id or each.state not in _RAN:
            continue
        end = min(now, each.end, ended.get(each.id, now))
        amount = each.milli / MILLI_PER_GPU * _decayed(each.start, end, now, half_life)
        for name in _resources(each):
            used[name] = used.get(name, 0.0) + amount
    forever = half_life / math.log(2)
    capacity = {name: round(gpus * forever) for name, gpus in _capacity(pool)}
    return {
        tenant: Share({name: round(amount) for name, amount in sorted(used.items())}, capacity)
        for tenant, used in sums.items()
    }


def _resources(reservation: Reservation) -> Iterator[str]:
    yield ALL
    if len(reservation.shape.models) == 1:
        yield reservation.shape.models[0]


def _capacity(pool: Pool) -> Iterator[tuple[str, int]]:
    yield ALL, sum(gpus * nodes for (_, gpus), nodes in pool.kinds.items())
    for model in sorted({model for model, _ in pool.kinds}):
        yield (
            model,
            sum(gpus * nodes for (name, gpus), nodes in pool.kinds.items() if name == model),
        )


def _decayed(start: Instant, end: Instant, now: Instant, half_life: int) -> float:
    """The seconds of a span, each worth half of one that is a half-life younger."""
    if end <= start:
        return 0.0
    ages = ((now - end) / MICROSECONDS, (now - start) / MICROSECONDS)
    young, old = (math.exp2(-age / half_life) for age in ages)
    return (young - old) * half_life / math.log(2)

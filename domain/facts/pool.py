"""Facts of pools: opened, ruled, frozen, preempted in."""

from dataclasses import dataclass

from domain.facts.fact import OfPool
from domain.ids import OrderId, PoolId, ReservationId
from domain.policy import PoolPolicy
from domain.pool_hours import PoolHour
from domain.sealed import Sealed
from domain.timespan import Instant


@dataclass(frozen=True, slots=True)
class PoolOpened(OfPool):
    """A partition of the fleet began to take reservations."""

    pool_id: PoolId
    site: str
    policy: PoolPolicy


@dataclass(frozen=True, slots=True)
class PoolPolicyChanged(OfPool):
    """The rules of a pool changed for what comes after."""

    pool_id: PoolId
    policy: PoolPolicy


@dataclass(frozen=True, slots=True)
class PoolFrozen(OfPool):
    """Someone pulled the brake on some kinds of act in a pool."""

    pool_id: PoolId
    acts: tuple[str, ...]
    reason: str
    note: Sealed | None


@dataclass(frozen=True, slots=True)
class PoolThawed(OfPool):
    """The brake on some kinds of act was let go."""

    pool_id: PoolId
    acts: tuple[str, ...]
    reason: str
    note: Sealed | None


@dataclass(frozen=True, slots=True)
class PoolClosed(OfPool):
    """A pool takes no more reservations and has no node left."""

    pool_id: PoolId


@dataclass(frozen=True, slots=True)
class PreemptionOrdered(OfPool):
    """Reservations were told to give way, together, for a named one or for an operator."""

    pool_id: PoolId
    order_id: OrderId
    victims: tuple[ReservationId, ...]
    for_reservation: ReservationId | None
    reason: str
    grace_until: Instant
    asked_milli: int
    moved_milli: int
    note: Sealed | None


@dataclass(frozen=True, slots=True)
class PoolHoursClosed(OfPool):
    """Hours of a pool are final: by the facts up to a position, their states fill its capacity."""

    pool_id: PoolId
    cutoff_seq: int
    hours: tuple[PoolHour, ...]

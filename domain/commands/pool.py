"""Commands on pools, the brakes among them."""

from dataclasses import dataclass, field

from domain.ids import PoolId, ReservationId
from domain.policy import PoolPolicy
from domain.sealed import Sealed


@dataclass(frozen=True, slots=True)
class OpenPool:
    """Let a pool take reservations."""

    pool_id: PoolId
    site: str = ""
    policy: PoolPolicy = field(default_factory=PoolPolicy)


@dataclass(frozen=True, slots=True)
class ChangePolicy:
    """Change the rules of a pool for what comes after."""

    pool_id: PoolId
    policy: PoolPolicy


@dataclass(frozen=True, slots=True)
class ClosePool:
    """Take no more reservations in an empty pool."""

    pool_id: PoolId


@dataclass(frozen=True, slots=True)
class Freeze:
    """Stop some kinds of act in a pool, or in all when none is named."""

    acts: tuple[str, ...]
    reason: str
    pool_id: PoolId | None = None
    note: Sealed | None = None


@dataclass(frozen=True, slots=True)
class Thaw:
    """Let some kinds of act go on again."""

    acts: tuple[str, ...]
    reason: str
    pool_id: PoolId | None = None
    note: Sealed | None = None


@dataclass(frozen=True, slots=True)
class Preempt:
    """Order reservations to give way, together."""

    pool_id: PoolId
    victims: tuple[ReservationId, ...]
    reason: str
    note: Sealed | None = None

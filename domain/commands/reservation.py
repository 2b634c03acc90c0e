"""Commands on reservations."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.environment import Environment
from domain.ids import PoolId, ReservationId, TenantId
from domain.sizes import ReservationClass, Shape, Size
from domain.timespan import Instant


@dataclass(frozen=True, slots=True)
class RequestReservation:
    """Book units over a window: held for `hold_seconds` when given, binding at once when not."""

    tenant_id: TenantId
    pool_id: PoolId
    size: Size
    start: Instant | None
    """None means now, the second that has begun."""
    end: Instant | None = None
    """Either the end or the duration is given."""
    duration_seconds: int | None = None
    klass: ReservationClass = ReservationClass.GUARANTEED
    shape: Shape = field(default_factory=Shape)
    hold_seconds: int | None = None
    overflow: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)
    offers_max: int = 3
    """How many windows that would fit are looked for when there is no capacity."""
    until_released: bool = False
    """Without an end of its own: neither end nor duration is given, terms are renewed instead."""
    environment: Environment | None = None
    """An environment of its own that is set up on the units, and wiped behind them."""


@dataclass(frozen=True, slots=True)
class ConfirmHold:
    """Make a hold binding."""

    reservation_id: ReservationId
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class ExtendReservation:
    """Let a reservation end later, on the units that it has."""

    reservation_id: ReservationId
    end: Instant
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class ShrinkReservation:
    """Let a reservation ask for less from now on: `keep` of it stays."""

    reservation_id: ReservationId
    keep: Size
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class StopRenewing:
    """Let an open-ended reservation end with the term that it has."""

    reservation_id: ReservationId
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Let go of a running reservation before its end."""

    reservation_id: ReservationId
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class CancelReservation:
    """Call a reservation off before it starts."""

    reservation_id: ReservationId
    expected_version: int | None = None

"""Facts of a reservation's life, from the hold to its one end."""

from collections.abc import Mapping
from dataclasses import dataclass

from domain.facts.fact import OfReservation
from domain.ids import NodeId, OrderId, PoolId, ReservationId, TenantId
from domain.sizes import ReservationClass, Shape, Size
from domain.timespan import Instant
from domain.units import Piece, Segment


@dataclass(frozen=True, slots=True)
class ReservationHeld(OfReservation):
    """Units were set aside until confirmed or lapsed."""

    reservation_id: ReservationId
    tenant_id: TenantId
    pool_id: PoolId
    klass: ReservationClass
    size: Size
    shape: Shape
    milli: int
    start: Instant
    end: Instant
    segments: tuple[Segment, ...]
    tags: Mapping[str, str]
    until: Instant
    quote: str = ""


@dataclass(frozen=True, slots=True)
class ReservationConfirmed(OfReservation):
    """A tenant's claim became binding, with its units."""

    reservation_id: ReservationId
    tenant_id: TenantId
    pool_id: PoolId
    klass: ReservationClass
    size: Size
    shape: Shape
    milli: int
    start: Instant
    end: Instant
    segments: tuple[Segment, ...]
    tags: Mapping[str, str]
    quote: str = ""


@dataclass(frozen=True, slots=True)
class HoldConfirmed(OfReservation):
    """A hold became binding with the units that it had set aside."""

    reservation_id: ReservationId


@dataclass(frozen=True, slots=True)
class ReservationQueued(OfReservation):
    """No units are free as things stand, but moving others might free some; the planner decides."""

    reservation_id: ReservationId
    tenant_id: TenantId
    pool_id: PoolId
    klass: ReservationClass
    size: Size
    shape: Shape
    milli: int
    start: Instant
    end: Instant
    tags: Mapping[str, str]
    reason: str


@dataclass(frozen=True, slots=True)
class QueuedRefused(OfReservation):
    """A queued request got its final no, with the proof's kind."""

    reservation_id: ReservationId
    reason: str
    evidence: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReservationLapsed(OfReservation):
    """A hold ran out unconfirmed; its units are free."""

    reservation_id: ReservationId


@dataclass(frozen=True, slots=True)
class ReservationExtended(OfReservation):
    """A reservation ends later, on the units of these further segments."""

    reservation_id: ReservationId
    end: Instant
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class RenewalAgreed(OfReservation):
    """A reservation has no end of its own: its term is renewed ahead of its end until it is released."""

    reservation_id: ReservationId
    term_seconds: int
    notice_seconds: int
    retry_seconds: int


@dataclass(frozen=True, slots=True)
class ReservationRenewed(OfReservation):
    """An open-ended reservation got a further term, on the units of these segments."""

    reservation_id: ReservationId
    end: Instant
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class RenewalRefused(OfReservation):
    """A further term does not fit as things stand; unless it does later, the reservation ends with its term."""

    reservation_id: ReservationId
    reason: str
    evidence: Mapping[str, str]
    again_at: Instant | None


@dataclass(frozen=True, slots=True)
class RenewalStopped(OfReservation):
    """An open-ended reservation is renewed no more: it ends with the term that it has."""

    reservation_id: ReservationId


@dataclass(frozen=True, slots=True)
class ReservationShrunk(OfReservation):
    """A reservation asks for less from an instant on; the pieces it gave up are free."""

    reservation_id: ReservationId
    at: Instant
    size: Size
    milli: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class ReservationStarted(OfReservation):
    """A reservation's window opened; its units are to be handed over."""

    reservation_id: ReservationId


@dataclass(frozen=True, slots=True)
class ReservationAtRisk(OfReservation):
    """A confirmed reservation lost units that it has not got back yet."""

    reservation_id: ReservationId
    short_milli: int


@dataclass(frozen=True, slots=True)
class ReservationDegraded(OfReservation):
    """A running reservation has fewer units than it was promised."""

    reservation_id: ReservationId
    short_milli: int


@dataclass(frozen=True, slots=True)
class ReservationInterrupted(OfReservation):
    """A node lost what ran on it; the holder keeps its units, and the time until it has them anew is credited."""

    reservation_id: ReservationId
    node_id: NodeId
    milli: int
    lost_at: Instant
    cause: str


@dataclass(frozen=True, slots=True)
class ReservationHealed(OfReservation):
    """A reservation has all that it was promised again."""

    reservation_id: ReservationId


@dataclass(frozen=True, slots=True)
class ReservationPreempted(OfReservation):
    """A reservation must give way: its entitlement ends at `at`."""

    reservation_id: ReservationId
    order_id: OrderId
    at: Instant
    reason: str


@dataclass(frozen=True, slots=True)
class ReservationGivenBack(OfReservation):
    """A tenant let go of a running reservation before its end."""

    reservation_id: ReservationId


@dataclass(frozen=True, slots=True)
class ReservationCancelled(OfReservation):
    """A reservation was called off before it started."""

    reservation_id: ReservationId


@dataclass(frozen=True, slots=True)
class ReservationEnded(OfReservation):
    """A reservation reached its one end; `state` says which, `reason` why."""

    reservation_id: ReservationId
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class UnitsAssigned(OfReservation):
    """Units were added to a reservation for further segments."""

    reservation_id: ReservationId
    segments: tuple[Segment, ...]
    cause: str
    from_seq: int


@dataclass(frozen=True, slots=True)
class UnitsReassigned(OfReservation):
    """A part of a reservation moved to other units over a span; what it left is free."""

    reservation_id: ReservationId
    start: Instant
    end: Instant
    left: tuple[Piece, ...]
    taken: tuple[Piece, ...]
    cause: str
    from_seq: int


@dataclass(frozen=True, slots=True)
class UnitsReleased(OfReservation):
    """Units were taken from a reservation over a span, and nothing came in their place."""

    reservation_id: ReservationId
    start: Instant
    end: Instant
    pieces: tuple[Piece, ...]
    cause: str


@dataclass(frozen=True, slots=True)
class OverflowStarted(OfReservation):
    """A reservation began to run beyond its tenant's quota, at the overflow rate."""

    reservation_id: ReservationId
    milli: int


@dataclass(frozen=True, slots=True)
class OverflowEnded(OfReservation):
    """A reservation stopped running beyond quota; `how` says why."""

    reservation_id: ReservationId
    milli: int
    how: str

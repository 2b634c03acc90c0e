"""What the hardware reported: applied, freed, used; deduplicated by source, session and number."""

from dataclasses import dataclass

from domain.facts.fact import OfNode
from domain.ids import NodeId, PoolId, ReservationId
from domain.timespan import Instant
from domain.units import Piece


@dataclass(frozen=True, slots=True)
class ReportStamp:
    """Whose report it is, and its number in that source's session."""

    source: str
    session: str
    number: int


@dataclass(frozen=True, slots=True)
class UnitsApplied(OfNode):
    """The hardware handed units of one node to their holder."""

    pool_id: PoolId
    node_id: NodeId
    reservation_id: ReservationId
    pieces: tuple[Piece, ...]
    stamp: ReportStamp


@dataclass(frozen=True, slots=True)
class ApplyFailed(OfNode):
    """The hardware could not hand units over."""

    pool_id: PoolId
    node_id: NodeId
    reservation_id: ReservationId
    pieces: tuple[Piece, ...]
    cause: str
    stamp: ReportStamp


@dataclass(frozen=True, slots=True)
class UnitsFreed(OfNode):
    """Units of one node are free of their holder, and clean."""

    pool_id: PoolId
    node_id: NodeId
    reservation_id: ReservationId
    pieces: tuple[Piece, ...]
    stamp: ReportStamp


@dataclass(frozen=True, slots=True)
class ReleasePresumed(OfNode):
    """No word came of a release within its grace; it is taken as done at the planned instant."""

    pool_id: PoolId
    node_id: NodeId
    reservation_id: ReservationId
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class ActivityObserved(OfNode):
    """Units were seen occupied, or idle in their holder's hands, over a span."""

    pool_id: PoolId
    node_id: NodeId
    reservation_id: ReservationId
    pieces: tuple[Piece, ...]
    start: Instant
    end: Instant
    occupied: bool
    active: bool
    stamp: ReportStamp

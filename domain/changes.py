"""What a fact changed in the fleet's calendar: for the placer's index and the exclusion cells."""

from dataclasses import dataclass

from domain.ids import ReservationId, TenantId
from domain.timespan import Instant
from domain.units import Piece


@dataclass(frozen=True, slots=True)
class CellTaken:
    """A piece became held over a span."""

    index: int
    base_milli: int
    piece: Piece
    start: Instant
    end: Instant
    tenant_id: TenantId | None
    holder: ReservationId


@dataclass(frozen=True, slots=True)
class CellFreed:
    """A piece is no longer held over a span; a past one stays in the record of what was."""

    index: int
    base_milli: int
    piece: Piece
    start: Instant
    end: Instant
    tenant_id: TenantId | None
    holder: ReservationId
    is_past: bool


@dataclass(frozen=True, slots=True)
class NodeAdded:
    """A node is known; it is closed until opened."""

    index: int


@dataclass(frozen=True, slots=True)
class NodeOpened:
    """A node takes new holders, or does not any more."""

    index: int
    is_open: bool


@dataclass(frozen=True, slots=True)
class SlotOpened:
    """A GPU takes new holders, or does not any more."""

    index: int
    slot: int
    is_open: bool


Change = CellTaken | CellFreed | NodeAdded | NodeOpened | SlotOpened

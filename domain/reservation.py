"""A reservation as the ledger knows it."""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from domain.environment import EnvironmentState
from domain.ids import OrderId, PoolId, ReservationId, TenantId
from domain.sizes import ReservationClass, Shape, Size
from domain.states import ReservationState
from domain.timespan import Instant, Timespan
from domain.units import Piece, Segment


@dataclass(frozen=True, slots=True, order=True)
class Holding:
    """One piece over one span; its cell reaches `gap` microseconds further, for cleaning."""

    piece: Piece
    start: Instant
    end: Instant
    gap: int

    @property
    def clear(self) -> Instant:
        """The instant from which the piece can be booked again."""
        return Instant(self.end + self.gap)


@dataclass(frozen=True, slots=True)
class Renewal:
    """How the term of an open-ended reservation is renewed, as agreed when it was booked."""

    term_seconds: int
    notice_seconds: int
    retry_seconds: int
    due: Instant | None
    """When the next renewal is tried; None when the term ends before another try."""
    refused: bool = False
    """Whether the last try did not fit, and the holder was told."""


@dataclass(slots=True)
class Reservation:
    """A tenant's claim on a span. `holdings` are the units that it is entitled to, and when."""

    id: ReservationId
    tenant_id: TenantId
    pool_id: PoolId
    klass: ReservationClass
    size: Size
    shape: Shape
    milli: int
    start: Instant
    end: Instant
    state: ReservationState
    tags: Mapping[str, str] = field(default_factory=dict)
    holdings: tuple[Holding, ...] = ()
    until: Instant | None = None
    """When a hold lapses."""
    order_id: OrderId | None = None
    """The preemption that it yields to."""
    intent_version: int = 0
    """The stream version of the last fact that changed what is intended."""
    waits_since: Instant | None = None
    """When it was queued, if it ever was: its place among those who wait."""
    renewal: Renewal | None = None
    """Of one without an end of its own."""
    environment: EnvironmentState | None = None
    """Of one that asked for an environment."""

    @property
    def holder_id(self) -> ReservationId:
        """Its id among all holders of units."""
        return self.id

    @property
    def owner(self) -> TenantId | None:
        """The tenant whose units they are."""
        return self.tenant_id

    @property
    def span(self) -> Timespan:
        """Its window."""
        return Timespan(self.start, self.end)

    def held_milli(self, at: Instant) -> int:
        """How much it is entitled to at an instant."""
        return sum(h.piece.width_milli for h in self.holdings if h.start <= at < h.end)

    def short_milli(self, at: Instant) -> int:
        """How much it lacks at an instant of its window."""
        return self.milli - self.held_milli(at)

    def first_shortage(self, after: Instant) -> Timespan | None:
        """The first span from an instant on, inside the window, over which it lacks something."""
        edges = sorted(
            {max(after, self.start), self.end}
            | {edge for h in self.holdings for edge in (h.start, h.end) if edge > after}
        )
        for start, end in itertools.pairwise(edges):
            if end <= self.end and self.short_milli(Instant(start)) > 0:
                return Timespan(Instant(start), Instant(end))
        return None


def holdings_of(segments: Iterable[Segment], gap: int) -> tuple[Holding, ...]:
    """Segments as holdings; only what comes last leaves the pool's gap behind it."""
    listed = tuple(segments)
    last = max((segment.end for segment in listed), default=0)
    return tuple(
        Holding(piece, segment.start, segment.end, gap if segment.end == last else 0)
        for segment in listed
        for piece in segment.pieces
    )


def cut(holding: Holding, piece: Piece, span: Timespan) -> tuple[Holding, ...] | None:
    """What is left of a holding when a piece is taken from it over a span; None if untouched."""
    whole = holding.piece
    if not whole.overlaps(piece) or not Timespan(holding.start, holding.end).overlaps(span):
        return None
    first = max(whole.first_milli, piece.first_milli)
    end_milli = min(whole.end_milli, piece.end_milli)
    taken = Piece(whole.node_id, first, end_milli - first)
    rest = [
        Holding(Piece(whole.node_id, low, high - low), holding.start, holding.end, holding.gap)
        for low, high in ((whole.first_milli, first), (end_milli, whole.end_milli))
        if low < high
    ]
    if holding.start < span.start:
        rest.append(Holding(taken, holding.start, span.start, holding.gap))
    if span.end < holding.end:
        rest.append(Holding(taken, span.end, holding.end, holding.gap))
    return tuple(sorted(rest))

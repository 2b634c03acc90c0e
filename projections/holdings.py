"""Which units each reservation is entitled to, followed from facts alone."""

from dataclasses import dataclass

from domain.facts import reservation as r
from domain.facts.fact import OfReservation
from domain.ids import ReservationId
from domain.record import Recorded
from domain.timespan import Instant, Timespan
from domain.units import Piece, Segment


@dataclass(slots=True)
class Held:
    """One reservation: whose, where, as what, and its pieces over time."""

    reservation_id: ReservationId
    tenant_id: str
    pool_id: str
    klass: str
    state: str
    start: Instant
    end: Instant
    pieces: list[tuple[Piece, Instant, Instant]]


def add(held: Held, segments: tuple[Segment, ...]) -> None:
    """Further pieces."""
    held.pieces += [(p, s.start, s.end) for s in segments for p in s.pieces]


def cut(held: Held, pieces: tuple[Piece, ...] | None, span: Timespan) -> None:
    """Take pieces, or all of them when none is named, away over a span."""
    kept: list[tuple[Piece, Instant, Instant]] = []
    for piece, start, end in held.pieces:
        remains = [(piece, start, end)]
        for gone in (piece,) if pieces is None else pieces:
            remains = [part for whole in remains for part in without(whole, gone, span)]
        kept += remains
    held.pieces = kept


def without(
    whole: tuple[Piece, Instant, Instant], gone: Piece, span: Timespan
) -> list[tuple[Piece, Instant, Instant]]:
    """What remains of a piece over a span when another one is taken from it over a span."""
    piece, start, end = whole
    if not piece.overlaps(gone) or not Timespan(start, end).overlaps(span):
        return [whole]
    first = max(piece.first_milli, gone.first_milli)
    last = min(piece.end_milli, gone.end_milli)
    parts = [
        (Piece(piece.node_id, low, high - low), start, end)
        for low, high in ((piece.first_milli, first), (last, piece.end_milli))
        if low < high
    ]
    middle = Piece(piece.node_id, first, last - first)
    if start < span.start:
        parts.append((middle, start, span.start))
    if span.end < end:
        parts.append((middle, span.end, end))
    return parts


class Holdings:
    """All reservations that are not over, and what each fact does to them."""

    def __init__(self) -> None:
        """Begin with none."""
        self.by_id: dict[ReservationId, Held] = {}

    def follow(self, recorded: Recorded) -> Held | None:
        """Fold one fact; the reservation that it changed, if any."""
        fact = recorded.fact
        if isinstance(fact, r.ReservationConfirmed | r.ReservationHeld):
            return self._admit(fact)
        if not isinstance(fact, OfReservation):
            return None
        held = self.by_id.get(fact.reservation_id)
        if held is not None:
            _change(held, fact, recorded.occurred_at)
        return held

    def _admit(self, fact: r.ReservationConfirmed | r.ReservationHeld) -> Held:
        state = "held" if isinstance(fact, r.ReservationHeld) else "confirmed"
        held = Held(
            fact.reservation_id,
            fact.tenant_id,
            fact.pool_id,
            fact.klass.value,
            state,
            fact.start,
            fact.end,
            [],
        )
        add(held, fact.segments)
        self.by_id[fact.reservation_id] = held
        return held


def _change(held: Held, fact: object, at: Instant) -> None:
    """What a fact does to the units, and the state, of its reservation."""
    match fact:
        case r.UnitsAssigned(segments=segments):
            add(held, segments)
        case (
            r.ReservationExtended(end=end, segments=segments)
            | r.ReservationRenewed(end=end, segments=segments)
        ):
            held.end = end
            add(held, segments)
        case r.UnitsReassigned(start=start, end=end, left=left, taken=taken):
            cut(held, left, Timespan(start, end))
            add(held, (Segment(start, end, taken),))
        case r.UnitsReleased(start=start, end=end, pieces=pieces):
            cut(held, pieces, Timespan(start, end))
        case r.ReservationShrunk(at=from_at, pieces=pieces):
            cut(held, pieces, Timespan(from_at, held.end))
        case r.ReservationPreempted(at=from_at):
            cut(held, None, Timespan(from_at, held.end))
            held.end = from_at
            held.state = "leaving" if held.state in {"active", "degraded"} else held.state
        case r.ReservationEnded(state=state):
            cut(held, None, Timespan(at, max(at, held.end)))
            held.state = state
        case r.HoldConfirmed():
            held.state = "confirmed"
        case r.ReservationStarted():
            held.state = "active"
        case r.ReservationAtRisk():
            held.state = "at-risk"
        case r.ReservationDegraded():
            held.state = "degraded"
        case r.ReservationHealed():
            held.state = "confirmed" if held.state == "at-risk" else "active"
        case _:
            pass

"""Forgone time: what reservations let go of before its time, as far as nobody booked it anew."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from domain.facts import reservation as r
from domain.facts.fact import OfReservation
from domain.ids import NodeId, ReservationId
from domain.pricing import SkuMeter
from domain.record import Recorded
from domain.timespan import MICROSECONDS, Instant, Timespan
from domain.units import Piece
from projections.holdings import Held, without

_ENDS = {"cancelled": SkuMeter.CANCELLED, "given-back": SkuMeter.GIVEN_BACK}


@dataclass(frozen=True, slots=True)
class Gone:
    """A piece that one reservation let go of over a span, and how long before the span began."""

    reservation_id: ReservationId
    meter: SkuMeter
    notice_seconds: int
    piece: Piece
    start: Instant
    end: Instant

    @property
    def milli(self) -> int:
        """How wide it is."""
        return self.piece.width_milli


class Forgone:
    """What was let go of, less what anybody booked anew while its time had not run out.

    The rest of a preempted reservation is not resold: it was taken for somebody else.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._open: dict[NodeId, list[Gone]] = {}
        self._done: list[Gone] = []

    def up_to(self, until: Instant) -> Iterator[Gone]:
        """What was let go of and not booked anew, as far as its time has come."""
        for gone in (*self._done, *(one for of_node in self._open.values() for one in of_node)):
            if gone.start < until:
                yield replace(gone, end=min(gone.end, until))

    def follow(self, recorded: Recorded, fact: OfReservation, held: Held | None) -> None:
        """Fold one fact; `held` is its reservation as it was before."""
        match fact:
            case (
                r.ReservationConfirmed()
                | r.UnitsAssigned()
                | r.ReservationExtended()
                | r.ReservationRenewed()
            ):
                booked = ((p, s.start, s.end) for s in fact.segments for p in s.pieces)
                self._resell(recorded.recorded_at, booked)
            case r.UnitsReassigned(start=start, end=end, taken=taken):
                self._resell(recorded.recorded_at, ((piece, start, end) for piece in taken))
            case _ if held is None:
                pass
            case r.HoldConfirmed():
                self._resell(recorded.recorded_at, held.pieces)
            case r.ReservationShrunk(at=at, pieces=pieces):
                self._let_go(recorded, held, SkuMeter.SHRUNK, at, pieces)
            case r.ReservationPreempted(at=at):
                self._let_go(recorded, held, SkuMeter.PREEMPTED, at, None)
            case r.ReservationEnded(state=state) if state in _ENDS and held.state != "held":
                self._let_go(recorded, held, _ENDS[state], recorded.occurred_at, None)
            case _:
                pass

    def _let_go(
        self,
        recorded: Recorded,
        held: Held,
        meter: SkuMeter,
        at: Instant,
        pieces: tuple[Piece, ...] | None,
    ) -> None:
        first = max(at, held.start)
        gave = notice(recorded.recorded_at, first)
        for piece, start, end in held.pieces:
            begin = max(start, first)
            if begin >= end:
                continue
            for part in (piece,) if pieces is None else _inside(piece, pieces):
                gone = Gone(held.reservation_id, meter, gave, part, Instant(begin), end)
                if meter is SkuMeter.PREEMPTED:
                    self._done.append(gone)
                else:
                    self._open.setdefault(part.node_id, []).append(gone)

    def _resell(self, now: Instant, booked: Iterable[tuple[Piece, Instant, Instant]]) -> None:
        """Take what is booked anew out of what was let go of."""
        if not self._open:
            return
        for piece, start, end in booked:
            had = self._open.pop(piece.node_id, None)
            if had is None:
                continue
            left: list[Gone] = []
            for gone in had:
                if gone.end <= now:
                    self._done.append(gone)
                    continue
                whole = (gone.piece, gone.start, gone.end)
                left += (
                    replace(gone, piece=part, start=since, end=until)
                    for part, since, until in without(whole, piece, Timespan(start, end))
                )
            if left:
                self._open[piece.node_id] = left


def notice(at: Instant, start: Instant) -> int:
    """Whole seconds from the second of an act to a start; none when it comes later."""
    return max(0, start // MICROSECONDS - at // MICROSECONDS)


def _inside(piece: Piece, pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The parts of a piece that others cover."""
    for other in pieces:
        if piece.overlaps(other):
            first = max(piece.first_milli, other.first_milli)
            last = min(piece.end_milli, other.end_milli)
            yield Piece(piece.node_id, first, last - first)

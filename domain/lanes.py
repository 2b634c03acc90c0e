"""What one node's milli-GPU are held for, over time: the truth that every proposal meets.

A lane is one run of milli-GPU (first, width); its spans never overlap. Two lanes that share a
milli-GPU never have spans that overlap either; that is the first promise, kept here.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from domain.ids import ReservationId
from domain.timespan import Instant
from domain.units import Piece


@dataclass(slots=True)
class Lane:
    """One run of milli-GPU, and the spans over which it is held, in order."""

    first: int
    end: int
    starts: list[Instant] = field(default_factory=list)
    ends: list[Instant] = field(default_factory=list)
    holders: list[ReservationId] = field(default_factory=list)


@dataclass(slots=True)
class Lanes:
    """All lanes of a node."""

    by_run: dict[tuple[int, int], Lane] = field(default_factory=dict)

    def add(self, piece: Piece, start: Instant, end: Instant, holder: ReservationId) -> None:
        """Hold a run over a span that is free; it is the caller who has looked."""
        run = (piece.first_milli, piece.width_milli)
        lane = self.by_run.get(run)
        if lane is None:
            lane = self.by_run[run] = Lane(piece.first_milli, piece.end_milli)
        at = bisect_right(lane.starts, start)
        lane.starts.insert(at, start)
        lane.ends.insert(at, end)
        lane.holders.insert(at, holder)

    def remove(self, piece: Piece, start: Instant, end: Instant, holder: ReservationId) -> None:
        """The exact inverse of `add`."""
        run = (piece.first_milli, piece.width_milli)
        lane = self.by_run[run]
        at = bisect_left(lane.starts, start)
        found = (lane.ends[at], lane.holders[at])
        assert found == (end, holder), "a span is removed as it was added"
        del lane.starts[at], lane.ends[at], lane.holders[at]
        if not lane.starts:
            del self.by_run[run]

    def conflict(
        self, first: int, end_milli: int, start: Instant, end: Instant
    ) -> ReservationId | None:
        """A holder that stands in the way of a run over a span, or None when it is free."""
        for lane in self.by_run.values():
            if lane.first < end_milli and first < lane.end:
                at = bisect_left(lane.starts, end)
                if at and lane.ends[at - 1] > start:
                    return lane.holders[at - 1]
        return None

    def held(
        self, first: int, end_milli: int, start: Instant, end: Instant
    ) -> Iterator[tuple[int, int, Instant, Instant, ReservationId]]:
        """Everything that overlaps a run and a span: (first, end milli, start, end, holder)."""
        for lane in self.by_run.values():
            if lane.first < end_milli and first < lane.end:
                at = bisect_left(lane.starts, end)
                while at and lane.ends[at - 1] > start:
                    at -= 1
                    yield lane.first, lane.end, lane.starts[at], lane.ends[at], lane.holders[at]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is held at any time."""
        return not self.by_run

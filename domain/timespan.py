"""Instants and half-open spans of UTC time."""

from dataclasses import dataclass
from typing import NewType

Instant = NewType("Instant", int)
"""Microseconds since 1970-01-01T00:00:00Z."""

MICROSECONDS = 1_000_000
"""Microseconds in a second."""

FAR_FUTURE = Instant(4_481_568_000 * MICROSECONDS)
"""2112-01-06T00:00:00Z: up to here a box corner of microseconds is exact in a double."""


def seconds(count: int) -> int:
    """That many seconds, in microseconds."""
    return count * MICROSECONDS


@dataclass(frozen=True, slots=True, order=True)
class Timespan:
    """The instants from `start` up to, and without, `end`."""

    start: Instant
    end: Instant

    @property
    def is_empty(self) -> bool:
        """Whether no instant lies inside."""
        return self.end <= self.start

    @property
    def microseconds(self) -> int:
        """How long it lasts; nothing when empty."""
        return max(0, self.end - self.start)

    def holds(self, instant: Instant) -> bool:
        """Whether the instant lies inside."""
        return self.start <= instant < self.end

    def covers(self, other: "Timespan") -> bool:
        """Whether every instant of the other lies inside."""
        return other.is_empty or (self.start <= other.start and other.end <= self.end)

    def overlaps(self, other: "Timespan") -> bool:
        """Whether the two share an instant."""
        return not (self & other).is_empty

    def __and__(self, other: "Timespan") -> "Timespan":
        """The instants in both."""
        return Timespan(max(self.start, other.start), min(self.end, other.end))

    def without(self, other: "Timespan") -> "tuple[Timespan, ...]":
        """What is left when the other is cut out: none, one or two spans."""
        if not self.overlaps(other):
            return () if self.is_empty else (self,)
        pieces = (Timespan(self.start, other.start), Timespan(other.end, self.end))
        return tuple(piece for piece in pieces if not piece.is_empty)

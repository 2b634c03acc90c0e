"""What can be held: ranges of milli-GPU on a node, over segments of time."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from domain.ids import NodeId
from domain.timespan import Instant, Timespan

MILLI_PER_GPU = 1000
GPUS_PER_NODE_MAX = 8


@dataclass(frozen=True, slots=True, order=True)
class Capacity:
    """An amount of GPU, exact to a thousandth."""

    milli: int

    @classmethod
    def of_gpus(cls, gpus: int) -> "Capacity":
        """That many whole GPUs."""
        return cls(gpus * MILLI_PER_GPU)

    def __add__(self, other: "Capacity") -> "Capacity":
        """Both together."""
        return Capacity(self.milli + other.milli)

    def __sub__(self, other: "Capacity") -> "Capacity":
        """The difference; it may be negative, which is what a shortage is."""
        return Capacity(self.milli - other.milli)

    def over(self, span: Timespan) -> int:
        """Held for a span: GPU-microseconds (milli-GPU x milliseconds), an integer."""
        return self.milli * (span.microseconds // 1000)


@dataclass(frozen=True, slots=True, order=True)
class Piece:
    """A run of milli-GPU on one node: slot g is `[1000 g, 1000 g + 1000)`."""

    node_id: NodeId
    first_milli: int
    width_milli: int

    @property
    def end_milli(self) -> int:
        """The first milli-GPU behind it."""
        return self.first_milli + self.width_milli

    @property
    def slots(self) -> range:
        """The ordinals of the GPUs that it touches."""
        return range(
            self.first_milli // MILLI_PER_GPU,
            (self.end_milli + MILLI_PER_GPU - 1) // MILLI_PER_GPU,
        )

    def overlaps(self, other: "Piece") -> bool:
        """Whether the two share a milli-GPU."""
        return (
            self.node_id == other.node_id
            and self.first_milli < other.end_milli
            and other.first_milli < self.end_milli
        )


@dataclass(frozen=True, slots=True)
class Segment:
    """The pieces that one reservation is entitled to from `start` up to `end`."""

    start: Instant
    end: Instant
    pieces: tuple[Piece, ...]

    @property
    def span(self) -> Timespan:
        """Its time."""
        return Timespan(self.start, self.end)

    @property
    def milli(self) -> int:
        """How much it holds at each of its instants."""
        return width(self.pieces)


def width(pieces: Iterable[Piece]) -> int:
    """The milli-GPU of all pieces together."""
    return sum(piece.width_milli for piece in pieces)


def pieces_of_mask(node_id: NodeId, mask: int) -> Iterator[Piece]:
    """The GPUs of a bit mask (bit g = slot g) as the fewest pieces, lowest first."""
    slot = 0
    while mask >> slot:
        if mask >> slot & 1:
            first = slot
            while mask >> slot & 1:
                slot += 1
            yield Piece(node_id, first * MILLI_PER_GPU, (slot - first) * MILLI_PER_GPU)
        else:
            slot += 1

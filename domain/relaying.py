"""The port of the relay's memory: how far the public copy of a shard's log is known to have come."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Mark:
    """The last event that was confirmed to be on the topic, and whether something is wrong."""

    seq: int
    epoch: int
    """Of the writer that wrote that event."""
    topic_id: str
    """Which topic it was: one that is made anew under the same name has another id."""
    halted: str = ""
    """Why neither relay nor sequencer may go on; empty when all is well."""


class Marks(Protocol):
    """Where the relay of one shard keeps its mark."""

    def take_turn(self) -> bool:
        """Be the one relay of the shard, unless another process is; asked again, it is still so."""
        ...

    def mark(self) -> Mark:
        """How far it is; position 0 before the first event."""
        ...

    def move(self, mark: Mark) -> None:
        """Keep how far it is now."""
        ...

    def halt(self, reason: str) -> None:
        """Let nothing go on until somebody has looked."""
        ...

"""What falls due by itself, in one order: by instant, then by kind, then by subject."""

from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heappop, heappush

from domain.timespan import Instant


class Due(IntEnum):
    """Kinds of timers; at one instant releases precede grants."""

    END = 0
    GIVE_WAY = 1
    LAPSE = 2
    MAINTENANCE_END = 3
    MAINTENANCE_START = 4
    NODE_GRACE = 5
    START = 6
    RECHECK = 7
    GRANT_END = 8
    PRESUME = 9
    REBOOT_GRACE = 10
    RENEW = 11


Timer = tuple[Instant, Due, str]


@dataclass(slots=True)
class Timers:
    """A heap with lazy deletion: a timer whose subject no longer wants it fires without effect.

    Stale timers are harmless, so taking back a batch leaves those it set, and puts back
    those it fired.
    """

    heap: list[Timer] = field(default_factory=list)

    def set(self, due: Instant, kind: Due, subject: str) -> None:
        """Let something fall due."""
        heappush(self.heap, (due, kind, subject))

    def next_due(self) -> Instant | None:
        """When the next one falls due, stale or not."""
        return self.heap[0][0] if self.heap else None

    def pop(self, now: Instant) -> Timer | None:
        """The first one that is due at an instant."""
        if self.heap and self.heap[0][0] <= now:
            return heappop(self.heap)
        return None

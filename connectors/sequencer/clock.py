"""Clocks of a writer: the machine's, watched for jumps, and a virtual one."""

import time
from collections.abc import Callable

from domain.timespan import MICROSECONDS, Instant

JUMP_SECONDS_MAX = 60
"""A wall clock that gets this far ahead of the monotonic one is not believed."""


class WallClock:
    """The machine's clock in microseconds."""

    def now(self) -> Instant:
        """The present instant."""
        return Instant(time.time_ns() // 1000)


class ClockGuard:
    """Notices a wall clock that jumped ahead, by the monotonic clock beside it."""

    def __init__(
        self,
        wall: Callable[[], int],
        monotonic: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Trust the wall clock as it is now; both clocks are read at once."""
        self._wall, self._monotonic = wall, monotonic
        self._offset = wall() - monotonic() // 1000
        self.ahead_microseconds = 0
        """How far it is ahead beyond belief; nothing while it is believed."""

    def now(self) -> Instant:
        """The wall clock's instant; `ahead_microseconds` says whether to believe it."""
        wall = self._wall()
        ahead = wall - self._monotonic() // 1000 - self._offset
        if ahead > JUMP_SECONDS_MAX * MICROSECONDS:
            self.ahead_microseconds = ahead
        return Instant(wall)

    def confirm(self) -> None:
        """An operator believes it: what is ahead is the truth from now on."""
        self._offset = self._wall() - self._monotonic() // 1000
        self.ahead_microseconds = 0

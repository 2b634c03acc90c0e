"""Pool-hours: what a pool had in one hour of UTC, and in which state all of it was."""

from dataclasses import dataclass

from domain.timespan import Instant

HOUR = 3_600_000_000
"""Microseconds."""

STATES = (
    "down",
    "maintenance",
    "service",
    "lent",
    "overflow",
    "borrowed",
    "reserved_used",
    "reserved_unused",
    "held",
    "idle",
)
"""The first that applies, for each unit at each instant."""


@dataclass(frozen=True, slots=True)
class StateSum:
    """What one state came to in one hour of a pool."""

    state: str
    gpu_microseconds: int


@dataclass(frozen=True, slots=True)
class PoolHour:
    """One hour of a pool: its capacity counted from nodes alone, and the states that fill it."""

    start: Instant
    capacity_gpu_microseconds: int
    states: tuple[StateSum, ...]

    @property
    def filled(self) -> int:
        """What the states come to, in GPU-microseconds."""
        return sum(part.gpu_microseconds for part in self.states)

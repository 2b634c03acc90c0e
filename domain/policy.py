"""The rules of one pool. Every limit has a name and a default."""

from dataclasses import dataclass
from enum import StrEnum

DAY_SECONDS = 86_400


class Grade(StrEnum):
    """How finely a pool's connector can hold what is sold."""

    DEVICE = "device"
    COUNT = "count"
    NODE = "node"


class Act(StrEnum):
    """The kinds of act that a brake can stop."""

    APPLY = "apply"
    PREEMPT = "preempt"
    REPAIR = "repair"
    PLAN = "plan"
    BOOKINGS = "bookings"


@dataclass(frozen=True, slots=True)
class PoolPolicy:
    """How a pool books, preempts, waits and repairs. Durations are whole seconds."""

    connector: str = "simulated"
    grade: Grade = Grade.DEVICE
    time_step_seconds: int = 1
    horizon_seconds: int = 366 * DAY_SECONDS
    window_seconds_max: int = 366 * DAY_SECONDS
    hold_seconds_max: int = DAY_SECONDS
    term_seconds: int = 30 * DAY_SECONDS
    """How far ahead an open-ended reservation commits its units."""
    term_notice_seconds: int = 7 * DAY_SECONDS
    """How long before its end a term is renewed, or its holder told that it is not."""
    term_retry_seconds: int = DAY_SECONDS
    """How long after a renewal that did not fit the next one is tried."""
    gap_seconds: int = 0
    grace_seconds: int = 0
    ack_grace_seconds: int = 300
    suspicion_grace_seconds: int = 120
    """How long a node may be silent before it is failed."""
    reboot_grace_seconds: int = 900
    """How long a reboot that a node told of may take before the node counts as silent."""
    planned_reboot_grace_seconds: int = 1_800
    """The same for a reboot that an operator planned, which may update firmware."""
    runtime_seconds_min: int = 0
    """How long a borrowed reservation runs at least before a guaranteed ask may end it."""
    preemption: bool = True
    borrowing: bool = True
    shares: bool = True
    acceptance: bool = False
    """Whether nodes are tested when they join, after repair, maintenance and a reboot."""
    acceptance_checks: tuple[str, ...] = ("gpus", "memory", "links")
    """The checks that a node has to pass, by their names."""
    disruption_ratio_max: int = 4
    """Most milli-GPU moved for each milli-GPU asked."""
    breaker_percent: int = 100
    """More of the pool's GPUs lost or preempted within `breaker_seconds` freezes it; 100: never."""
    breaker_seconds: int = 600
    orchestrators: tuple[str, ...] = ("kubernetes", "slurm", "none")
    """What environments the pool's connector can set up; none of them when empty."""
    fairness_half_life_seconds: int = 0
    """Who waits is served by dominant share, usage counting half after so long; 0: by arrival."""
    required_tags: tuple[str, ...] = ()

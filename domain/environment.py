"""What a reservation may want on its units: an environment of its own, and where that stands."""

from dataclasses import dataclass
from enum import StrEnum


class Orchestrator(StrEnum):
    """What runs work on the units."""

    KUBERNETES = "kubernetes"
    SLURM = "slurm"
    NONE = "none"


class EnvironmentStage(StrEnum):
    """Where an environment stands."""

    REQUESTED = "requested"
    PROVISIONED = "provisioned"
    READY = "ready"
    FAILED = "failed"
    TORN_DOWN = "torn-down"


class EnvironmentReport(StrEnum):
    """What a provisioner tells of an environment."""

    PROVISIONED = "provisioned"
    CHECKED = "checked"
    TORN_DOWN = "torn-down"
    WIPED = "wiped"


ENVIRONMENT_CHECKS = ("control-plane", "gpus", "isolation", "storage")
"""What an environment has to pass before it is handed over; `isolation` is a probe from outside that must fail."""

SCRATCH_GIB_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment that is asked for: scratch is wiped behind it, the volume is the tenant's and stays."""

    orchestrator: Orchestrator
    scratch_gib: int = 0
    volume: str = ""


@dataclass(frozen=True, slots=True)
class EnvironmentState:
    """An environment as the ledger knows it."""

    asked: Environment
    stage: EnvironmentStage

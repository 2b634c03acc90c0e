"""Commands on nodes and on the groups that they sit in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from domain.facts.hardware import ReportStamp
from domain.facts.node import CheckReport, LevelGroup
from domain.ids import MaintenanceId, NodeId, PoolId
from domain.sealed import Sealed
from domain.timespan import Instant


@dataclass(frozen=True, slots=True)
class JoinNode:
    """Make a machine part of a pool."""

    pool_id: PoolId
    node_id: NodeId
    model: str
    gpus: int
    gpu_memory_mib: int = 0
    cpu_milli: int = 0
    memory_mib: int = 0
    driver: str = ""
    levels: tuple[LevelGroup, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportAcceptance:
    """Tell what the acceptance tests of a node found."""

    node_id: NodeId
    checks: tuple[CheckReport, ...]
    stamp: ReportStamp | None = None


@dataclass(frozen=True, slots=True)
class TestNode:
    """Take a node that nobody holds out for its acceptance tests."""

    node_id: NodeId


@dataclass(frozen=True, slots=True)
class CordonNode:
    """Give a node no new holder."""

    node_id: NodeId
    reason: str = ""
    note: Sealed | None = None


@dataclass(frozen=True, slots=True)
class UncordonNode:
    """Let a cordoned, draining or drained node serve again."""

    node_id: NodeId


@dataclass(frozen=True, slots=True)
class DrainNode:
    """Empty a node: move what has not started, let what runs end."""

    node_id: NodeId
    reason: str = ""
    note: Sealed | None = None


@dataclass(frozen=True, slots=True)
class PlanMaintenance:
    """Take a node, or every node of a level's group, out for a span."""

    pool_id: PoolId
    start: Instant
    end: Instant
    node_id: NodeId | None = None
    level: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class CancelMaintenance:
    """Call off a maintenance that has not started, or end a running one early."""

    maintenance_id: MaintenanceId


class Health(StrEnum):
    """What a monitor says of a node, of some of its GPUs, or of a group."""

    SUSPECTED = "suspected"
    REBOOTING = "rebooting"
    FAILED = "failed"
    RECOVERED = "recovered"


@dataclass(frozen=True, slots=True)
class ReportHealth:
    """Tell that a node, some slots of it, or a level's group fell silent, reboots, failed or is back."""

    pool_id: PoolId
    health: Health
    cause: str
    node_id: NodeId | None = None
    slots: tuple[int, ...] = ()
    level: str | None = None
    group: str | None = None
    boot_id: str = ""
    driver_load_id: str = ""
    occurred_at: Instant | None = None
    """None means now."""
    stamp: ReportStamp | None = None


@dataclass(frozen=True, slots=True)
class RetireNode:
    """Take an empty node out of the fleet for good."""

    node_id: NodeId

"""Facts of a node's life: joining, tests, cordon, drain, maintenance, failure, retirement."""

from collections.abc import Mapping
from dataclasses import dataclass

from domain.facts.fact import OfNode
from domain.facts.hardware import ReportStamp
from domain.ids import MaintenanceId, NodeId, PoolId
from domain.sealed import Sealed
from domain.timespan import Instant


@dataclass(frozen=True, slots=True)
class LevelGroup:
    """One level of the tree that a node sits in, and its group there."""

    level: str
    group: str


@dataclass(frozen=True, slots=True)
class CheckReport:
    """One acceptance check and what it found."""

    check: str
    passed: bool
    detail: str


@dataclass(frozen=True, slots=True)
class NodeJoined(OfNode):
    """A machine became part of a pool; its base offset is never used again."""

    pool_id: PoolId
    node_id: NodeId
    base_milli: int
    model: str
    gpus: int
    gpu_memory_mib: int
    cpu_milli: int
    memory_mib: int
    driver: str
    levels: tuple[LevelGroup, ...]
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AcceptanceStarted(OfNode):
    """A node is being tested before it may serve."""

    pool_id: PoolId
    node_id: NodeId
    trigger: str
    checks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AcceptancePassed(OfNode):
    """A node passed its tests and serves."""

    pool_id: PoolId
    node_id: NodeId
    checks: tuple[CheckReport, ...]


@dataclass(frozen=True, slots=True)
class AcceptanceFailed(OfNode):
    """A node failed its tests and stays out, with each check's report."""

    pool_id: PoolId
    node_id: NodeId
    checks: tuple[CheckReport, ...]


@dataclass(frozen=True, slots=True)
class NodeCordoned(OfNode):
    """A node takes no new holder; those that it has stay."""

    pool_id: PoolId
    node_id: NodeId
    reason: str
    note: Sealed | None


@dataclass(frozen=True, slots=True)
class NodeUncordoned(OfNode):
    """A node takes new holders again."""

    pool_id: PoolId
    node_id: NodeId


@dataclass(frozen=True, slots=True)
class NodeDrainStarted(OfNode):
    """A node gives up its holders: what has not started moves, what runs may end."""

    pool_id: PoolId
    node_id: NodeId
    reason: str
    note: Sealed | None


@dataclass(frozen=True, slots=True)
class NodeDrainCancelled(OfNode):
    """A node serves again before it was empty, or after."""

    pool_id: PoolId
    node_id: NodeId


@dataclass(frozen=True, slots=True)
class NodeDrained(OfNode):
    """The last holder left a draining node."""

    pool_id: PoolId
    node_id: NodeId


@dataclass(frozen=True, slots=True)
class MaintenancePlanned(OfNode):
    """A node will be out for a span; nothing is booked over it."""

    pool_id: PoolId
    node_id: NodeId
    maintenance_id: MaintenanceId
    start: Instant
    end: Instant


@dataclass(frozen=True, slots=True)
class MaintenanceCancelled(OfNode):
    """A planned maintenance will not happen; its span is bookable."""

    pool_id: PoolId
    node_id: NodeId
    maintenance_id: MaintenanceId


@dataclass(frozen=True, slots=True)
class MaintenanceStarted(OfNode):
    """A node went out for its maintenance."""

    pool_id: PoolId
    node_id: NodeId
    maintenance_id: MaintenanceId


@dataclass(frozen=True, slots=True)
class MaintenanceEnded(OfNode):
    """A node came back from its maintenance, in time or early."""

    pool_id: PoolId
    node_id: NodeId
    maintenance_id: MaintenanceId


@dataclass(frozen=True, slots=True)
class NodeSuspected(OfNode):
    """A node fell silent; it is failed only after its grace."""

    pool_id: PoolId
    node_id: NodeId
    cause: str
    boot_id: str
    grace_until: Instant
    stamp: ReportStamp | None


@dataclass(frozen=True, slots=True)
class NodeRebooting(OfNode):
    """A node boots anew: the work on it is lost, its holders keep their units."""

    pool_id: PoolId
    node_id: NodeId
    cause: str
    lost_at: Instant
    grace_until: Instant
    stamp: ReportStamp | None


@dataclass(frozen=True, slots=True)
class NodeFailed(OfNode):
    """A node stopped serving; its holders are short until it is replaced."""

    pool_id: PoolId
    node_id: NodeId
    cause: str
    stamp: ReportStamp | None


@dataclass(frozen=True, slots=True)
class NodeRecovered(OfNode):
    """A node is back in `state`; another boot or driver load means that its work was lost."""

    pool_id: PoolId
    node_id: NodeId
    state: str
    boot_id: str
    driver_load_id: str
    work_lost: bool
    lost_at: Instant | None
    """From when on its work is taken as lost; none when it was not, or was before."""
    stamp: ReportStamp | None


@dataclass(frozen=True, slots=True)
class NodeHeard(OfNode):
    """A monitor told of a node what was known already; nothing older is believed any more."""

    pool_id: PoolId
    node_id: NodeId
    health: str
    boot_id: str
    driver_load_id: str
    stamp: ReportStamp | None


@dataclass(frozen=True, slots=True)
class NodeRetired(OfNode):
    """A node left the fleet for good."""

    pool_id: PoolId
    node_id: NodeId


@dataclass(frozen=True, slots=True)
class UnitsFailed(OfNode):
    """GPUs of a node stopped serving; the node goes on with the others."""

    pool_id: PoolId
    node_id: NodeId
    slots: tuple[int, ...]
    cause: str
    blast_radius: str
    stamp: ReportStamp | None


@dataclass(frozen=True, slots=True)
class UnitsRecovered(OfNode):
    """Failed GPUs of a node serve again."""

    pool_id: PoolId
    node_id: NodeId
    slots: tuple[int, ...]
    stamp: ReportStamp | None

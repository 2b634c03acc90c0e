"""Facts of the groups that nodes sit in: a switch, a rack, an NVLink domain as one."""

from dataclasses import dataclass

from domain.facts.fact import OfLevel
from domain.ids import MaintenanceId, NodeId, PoolId
from domain.timespan import Instant


@dataclass(frozen=True, slots=True)
class DomainFailed(OfLevel):
    """A whole group of nodes stopped serving at once, for one cause."""

    pool_id: PoolId
    level: str
    group: str
    nodes: tuple[NodeId, ...]
    cause: str


@dataclass(frozen=True, slots=True)
class DomainRecovered(OfLevel):
    """A failed group serves again."""

    pool_id: PoolId
    level: str
    group: str
    nodes: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class DomainMaintenancePlanned(OfLevel):
    """A whole group will be out for a span, as one."""

    pool_id: PoolId
    level: str
    group: str
    maintenance_id: MaintenanceId
    start: Instant
    end: Instant

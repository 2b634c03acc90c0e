"""Pools, nodes, tenants and maintenances as the ledger knows them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.consent import OverflowMode
from domain.ids import MaintenanceId, NodeId, PoolId, ReservationId, TenantId
from domain.lanes import Lanes
from domain.policy import PoolPolicy
from domain.reservation import Holding
from domain.states import BOOKABLE, NodeState
from domain.timespan import Instant, Timespan
from domain.units import MILLI_PER_GPU, Piece


@dataclass(slots=True)
class Pool:
    """A partition of the fleet. `number` is its place in the order in which pools opened."""

    id: PoolId
    number: int
    site: str
    policy: PoolPolicy
    is_open: bool = True
    frozen: frozenset[str] = frozenset()
    nodes: dict[NodeId, None] = field(default_factory=dict)
    kinds: dict[tuple[str, int], int] = field(default_factory=dict)
    """How many nodes of each model and number of GPUs are in the pool."""
    upcoming: dict[ReservationId, None] = field(default_factory=dict)
    """Binding reservations that have not started: those that a plan may move."""
    queued: dict[ReservationId, None] = field(default_factory=dict)
    short: dict[ReservationId, None] = field(default_factory=dict)
    """Reservations that wait for units that they lost."""
    preempted: tuple[tuple[Instant, int], ...] = ()
    """When how much was ordered to give way, within the last span that the breaker looks at."""
    thawed_at: int = 0
    """The breaker looks at nothing before it."""
    borrowed: dict[ReservationId, None] = field(default_factory=dict)
    """Binding reservations of the borrowed class: those that may have to give way."""

    def node_gpus(self, models: tuple[str, ...]) -> int:
        """GPUs of the largest node among some models, or all: what "a whole node" means."""
        return max((gpus for model, gpus in self.kinds if not models or model in models), default=0)


@dataclass(slots=True)
class Node:
    """A machine. `index` is its place in the order in which nodes joined the shard."""

    id: NodeId
    index: int
    pool_id: PoolId
    base_milli: int
    model: str
    gpus: int
    levels: tuple[tuple[str, str], ...]
    labels: Mapping[str, str]
    state: NodeState
    joined_at: Instant
    since: Instant
    """When it came into its state."""
    heard_at: Instant
    """When what its monitors told last occurred; nothing older is believed."""
    lanes: Lanes = field(default_factory=Lanes)
    boot_id: str = ""
    driver_load_id: str = ""
    state_before: NodeState | None = None
    """Where a node that is waited for comes back to."""
    lost_at: Instant | None = None
    """When a node that is waited for fell silent."""
    grace_until: Instant | None = None
    failed_slots: frozenset[int] = frozenset()
    holders: dict[ReservationId, int] = field(default_factory=dict)
    """How many holdings each reservation has here."""
    intent_version: int = 0

    @property
    def piece(self) -> Piece:
        """All of it."""
        return Piece(self.id, 0, self.gpus * MILLI_PER_GPU)

    @property
    def is_bookable(self) -> bool:
        """Whether it takes new holders."""
        return self.state in BOOKABLE

    def group(self, level: str) -> str | None:
        """Its group in a level, if it has that level."""
        return next((group for name, group in self.levels if name == level), None)


@dataclass(slots=True)
class Tenant:
    """A team, possibly inside a parent."""

    id: TenantId
    parent_id: TenantId | None
    tags: Mapping[str, str]
    is_open: bool = True
    consents: dict[PoolId, tuple[OverflowMode, int]] = field(default_factory=dict)


@dataclass(slots=True)
class Maintenance:
    """A span over which a node is out."""

    id: MaintenanceId
    pool_id: PoolId
    node_id: NodeId
    start: Instant
    end: Instant
    holdings: tuple[Holding, ...] = ()
    started: bool = False

    @property
    def holder_id(self) -> ReservationId:
        """Its id among all holders of units."""
        return ReservationId(self.id)

    @property
    def owner(self) -> TenantId | None:
        """Nobody: a maintenance is no tenant's."""
        return None

    @property
    def span(self) -> Timespan:
        """Its time."""
        return Timespan(self.start, self.end)

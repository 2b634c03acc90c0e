"""The fleet: pools, nodes and their health, tenants and their quota, one row each."""

from typing import NamedTuple

from domain.evolve import INTENT
from domain.facts import hardware, node, pool, quota, tenant
from domain.facts.fact import OfNode, OfPool, OfQuota, OfReservation, OfTenant
from domain.record import Recorded
from projections.table import Table


class PoolRow(NamedTuple):
    """One pool."""

    pool_id: str
    site: str
    state: str
    frozen: str
    nodes: int
    gpus: int


class NodeRow(NamedTuple):
    """One node. `levels` is `level=group` with commas, `failed_slots` ordinals with commas."""

    node_id: str
    pool_id: str
    state: str
    model: str
    gpus: int
    levels: str
    failed_slots: str
    cause: str
    since: int
    intent_version: int


class TenantRow(NamedTuple):
    """One tenant."""

    tenant_id: str
    parent_id: str
    state: str


class GrantRow(NamedTuple):
    """One quota grant; instants are microseconds since 1970 UTC."""

    grant_id: str
    tenant_id: str
    pool_id: str
    nominal_milli: int
    borrow_milli: int
    lend_milli: int
    start: int
    end: int


class MaintenanceRow(NamedTuple):
    """One planned or running maintenance."""

    maintenance_id: str
    node_id: str
    start: int
    end: int
    state: str


_NODE_STATES: dict[type, str] = {
    node.AcceptanceStarted: "testing",
    node.AcceptancePassed: "ready",
    node.AcceptanceFailed: "failed",
    node.NodeCordoned: "cordoned",
    node.NodeUncordoned: "ready",
    node.NodeDrainStarted: "draining",
    node.NodeDrainCancelled: "ready",
    node.NodeDrained: "drained",
    node.MaintenanceStarted: "maintenance",
    node.NodeSuspected: "suspected",
    node.NodeRebooting: "rebooting",
    node.NodeFailed: "failed",
    node.NodeRetired: "retired",
}


class Fleet:
    """What there is, and how it is."""

    name = "fleet"
    version = 2

    def __init__(self) -> None:
        """Begin empty."""
        self.pools = Table("pool", PoolRow, 1)
        self.nodes = Table("node", NodeRow, 1)
        self.tenants = Table("tenant", TenantRow, 1)
        self.grants = Table("quota_grant", GrantRow, 1)
        self.maintenances = Table("maintenance", MaintenanceRow, 1)
        self.tables: tuple[Table, ...] = (
            self.pools,
            self.nodes,
            self.tenants,
            self.grants,
            self.maintenances,
        )
        self._tested: dict[str, bool] = {}

    def settle(self) -> None:
        """Rows are always up to date."""

    def apply(self, recorded: Recorded) -> None:
        """Let a subject's row follow its fact."""
        fact = recorded.fact
        if isinstance(fact, OfReservation | hardware.UnitsApplied | hardware.UnitsFreed):
            return
        if isinstance(fact, OfNode):
            self._node(recorded, fact)
        elif isinstance(fact, OfPool):
            self._pool(fact)
        elif isinstance(fact, OfTenant):
            self._tenant(fact)
        elif isinstance(fact, OfQuota):
            self._grant(fact)

    def _pool(self, fact: OfPool) -> None:
        row = self.pools.rows.get((fact.pool_id,))
        match fact:
            case pool.PoolOpened(pool_id=pool_id, site=site, policy=policy):
                self._tested[pool_id] = policy.acceptance
                self.pools.put(PoolRow(pool_id, site, "open", "", 0, 0))
            case pool.PoolPolicyChanged(pool_id=pool_id, policy=policy):
                self._tested[pool_id] = policy.acceptance
            case pool.PoolFrozen(acts=acts) if isinstance(row, PoolRow):
                frozen = sorted(set(filter(None, row.frozen.split(","))) | set(acts))
                self.pools.put(row._replace(frozen=",".join(frozen)))
            case pool.PoolThawed(acts=acts) if isinstance(row, PoolRow):
                frozen = sorted(set(filter(None, row.frozen.split(","))) - set(acts))
                self.pools.put(row._replace(frozen=",".join(frozen)))
            case pool.PoolClosed() if isinstance(row, PoolRow):
                self.pools.put(row._replace(state="closed"))
            case _:
                pass

    def _count(self, pool_id: str, nodes: int, gpus: int) -> None:
        row = self.pools.rows[pool_id,]
        assert isinstance(row, PoolRow)
        self.pools.put(row._replace(nodes=row.nodes + nodes, gpus=row.gpus + gpus))

    def _node(self, recorded: Recorded, fact: OfNode) -> None:
        if isinstance(fact, node.NodeJoined):
            row = self._joined(fact)
        else:
            old = self.nodes.rows.get((fact.node_id,))
            if not isinstance(old, NodeRow):
                return
            row = self._changed(old, fact)
        if row.state != getattr(self.nodes.rows.get((fact.node_id,)), "state", None):
            row = row._replace(since=recorded.occurred_at)
        if type(fact) in INTENT:
            row = row._replace(intent_version=recorded.stream_version)
        self.nodes.put(row)

    def _joined(self, fact: node.NodeJoined) -> NodeRow:
        self._count(fact.pool_id, 1, fact.gpus)
        state = "testing" if self._tested[fact.pool_id] else "ready"
        levels = ",".join(f"{level.level}={level.group}" for level in fact.levels)
        return NodeRow(
            fact.node_id, fact.pool_id, state, fact.model, fact.gpus, levels, "", "", 0, 0
        )

    def _changed(self, row: NodeRow, fact: OfNode) -> NodeRow:
        state = _NODE_STATES.get(type(fact), row.state)
        cause = getattr(fact, "cause", row.cause)
        match fact:
            case node.NodeRecovered(state=back):
                state, cause = back, ""
            case node.AcceptanceStarted() | node.AcceptancePassed():
                cause = ""
            case node.AcceptanceFailed(checks=checks):
                cause = "; ".join(
                    f"{c.check}: {c.detail}".rstrip(": ") for c in checks if not c.passed
                )
            case node.NodeRetired():
                self._count(row.pool_id, -1, -row.gpus)
            case node.UnitsFailed(slots=slots):
                failed = sorted({*map(int, filter(None, row.failed_slots.split(","))), *slots})
                row = row._replace(failed_slots=",".join(map(str, failed)))
            case node.UnitsRecovered(slots=slots):
                failed = sorted({*map(int, filter(None, row.failed_slots.split(",")))} - {*slots})
                row = row._replace(failed_slots=",".join(map(str, failed)))
            case node.MaintenancePlanned() | node.MaintenanceStarted():
                self._maintenance(fact)
            case node.MaintenanceCancelled() | node.MaintenanceEnded():
                self.maintenances.remove((fact.maintenance_id,))
                if row.state == "maintenance":
                    state = "testing" if self._tested[row.pool_id] else "ready"
            case _:
                pass
        return row._replace(state=state, cause=cause)

    def _maintenance(self, fact: node.MaintenancePlanned | node.MaintenanceStarted) -> None:
        if isinstance(fact, node.MaintenancePlanned):
            row = MaintenanceRow(fact.maintenance_id, fact.node_id, fact.start, fact.end, "planned")
            self.maintenances.put(row)
        else:
            old = self.maintenances.rows[fact.maintenance_id,]
            assert isinstance(old, MaintenanceRow)
            self.maintenances.put(old._replace(state="running"))

    def _tenant(self, fact: OfTenant) -> None:
        match fact:
            case tenant.TenantRegistered(tenant_id=tenant_id, parent_id=parent_id):
                self.tenants.put(TenantRow(tenant_id, parent_id or "", "open"))
            case tenant.TenantClosed(tenant_id=tenant_id):
                row = self.tenants.rows[tenant_id,]
                assert isinstance(row, TenantRow)
                self.tenants.put(row._replace(state="closed"))
            case _:
                pass

    def _grant(self, fact: OfQuota) -> None:
        match fact:
            case quota.QuotaGranted() | quota.QuotaAmended():
                self.grants.put(
                    GrantRow(
                        fact.grant_id,
                        fact.tenant_id,
                        fact.pool_id,
                        fact.nominal_milli,
                        fact.borrow_milli,
                        fact.lend_milli,
                        fact.start,
                        fact.end,
                    )
                )
            case quota.QuotaExpired(grant_id=grant_id):
                self.grants.remove((grant_id,))
            case _:
                pass

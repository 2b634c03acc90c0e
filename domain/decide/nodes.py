"""Deciding on nodes: joining, tests, cordon, drain, maintenance, retirement."""

from domain.commands.node import (
    CancelMaintenance,
    CordonNode,
    DrainNode,
    JoinNode,
    PlanMaintenance,
    RetireNode,
    UncordonNode,
)
from domain.decide import checks
from domain.decide.accepting import start_tests
from domain.decide.breaking import trip
from domain.decide.failing import Loss, all_slots, from_now, heal, lose
from domain.decide.transcript import Transcript
from domain.facts.level import DomainMaintenancePlanned
from domain.facts.node import (
    MaintenanceCancelled,
    MaintenanceEnded,
    MaintenancePlanned,
    NodeCordoned,
    NodeDrainCancelled,
    NodeDrained,
    NodeDrainStarted,
    NodeJoined,
    NodeRetired,
    NodeUncordoned,
)
from domain.fleet_state import Maintenance, Node
from domain.ids import MaintenanceId, NodeId
from domain.ledger import SHARD_MILLI
from domain.refusals import Reason, Refusal, refuse
from domain.states import NODE_STEPS, UPCOMING, NodeState
from domain.timespan import FAR_FUTURE, Timespan
from domain.units import GPUS_PER_NODE_MAX

NODES_MAX = 100_000
LEVELS_MAX = 8
MAINTENANCES_PER_COMMAND_MAX = 1_000


def join_node(t: Transcript, command: JoinNode) -> Refusal | None:
    """A machine becomes part of a pool, at a base offset of its own."""
    refusal = (
        checks.name("node_id", command.node_id)
        or checks.name("model", command.model)
        or checks.between("gpus", command.gpus, 1, GPUS_PER_NODE_MAX)
        or checks.between("gpu_memory_mib", command.gpu_memory_mib, 0, 1 << 32)
        or checks.between("cpu_milli", command.cpu_milli, 0, 1 << 40)
        or checks.between("memory_mib", command.memory_mib, 0, 1 << 40)
        or checks.text_map("labels", command.labels)
        or checks.known_pool(t.ledger, command.pool_id)
        or _levels(command)
    )
    if refusal:
        return refusal
    known = t.ledger.nodes.get(command.node_id)
    if known is not None:
        return checks.wrong_state(known, "join")
    if len(t.ledger.node_order) >= NODES_MAX:
        return refuse(Reason.LIMIT, limit="nodes_max", max=NODES_MAX, asked=NODES_MAX + 1)
    t.write(
        NodeJoined(
            command.pool_id,
            command.node_id,
            max(t.ledger.base_milli, t.ledger.shard * SHARD_MILLI),
            command.model,
            command.gpus,
            command.gpu_memory_mib,
            command.cpu_milli,
            command.memory_mib,
            command.driver,
            command.levels,
            command.labels,
        )
    )
    start_tests(t, t.ledger.nodes[command.node_id], "join")
    heal(t, t.ledger.pools[command.pool_id])
    return None


def _levels(command: JoinNode) -> Refusal | None:
    if len(command.levels) > LEVELS_MAX:
        return refuse(Reason.LIMIT, limit="levels_max", max=LEVELS_MAX, asked=len(command.levels))
    for at, level in enumerate(command.levels):
        refusal = checks.name(f"levels/{at}/level", level.level) or checks.name(
            f"levels/{at}/group", level.group
        )
        if refusal:
            return refusal
    return None


def cordon_node(t: Transcript, command: CordonNode) -> Refusal | None:
    """No new holder; those that it has stay."""
    refusal = (
        checks.known_node(t.ledger, command.node_id)
        or checks.code("reason", command.reason)
        or checks.note("note", command.note)
    )
    if refusal:
        return refusal
    node = t.ledger.nodes[command.node_id]
    if node.state is NodeState.CORDONED:
        return None
    if NodeState.CORDONED not in NODE_STEPS[node.state] or node.state is NodeState.SUSPECTED:
        return checks.wrong_state(node, "cordon")
    t.write(NodeCordoned(node.pool_id, node.id, command.reason, command.note))
    return None


def uncordon_node(t: Transcript, command: UncordonNode) -> Refusal | None:
    """A cordoned, draining or drained node serves again."""
    refusal = checks.known_node(t.ledger, command.node_id)
    if refusal:
        return refusal
    node = t.ledger.nodes[command.node_id]
    if node.state is NodeState.READY:
        return None
    if node.state is NodeState.CORDONED:
        t.write(NodeUncordoned(node.pool_id, node.id))
    elif node.state in {NodeState.DRAINING, NodeState.DRAINED}:
        t.write(NodeDrainCancelled(node.pool_id, node.id))
    else:
        return checks.wrong_state(node, "uncordon")
    heal(t, t.ledger.pools[node.pool_id])
    return None


def drain_node(t: Transcript, command: DrainNode) -> Refusal | None:
    """A node empties: what has not started moves, what runs may end."""
    refusal = (
        checks.known_node(t.ledger, command.node_id)
        or checks.code("reason", command.reason)
        or checks.note("note", command.note)
    )
    if refusal:
        return refusal
    node = t.ledger.nodes[command.node_id]
    if node.state in {NodeState.DRAINING, NodeState.DRAINED}:
        return None
    if node.state not in {NodeState.READY, NodeState.CORDONED}:
        return checks.wrong_state(node, "drain")
    t.write(NodeDrainStarted(node.pool_id, node.id, command.reason, command.note))
    loss = Loss(node, all_slots(node), from_now(t, FAR_FUTURE), "drain")
    lose(t, loss, only=UPCOMING)
    settle_drain(t, node)
    trip(t, t.ledger.pools[node.pool_id])
    return None


def settle_drain(t: Transcript, node: Node) -> None:
    """A draining node whose last holder left is drained."""
    if node.state is NodeState.DRAINING and node.lanes.is_empty:
        t.write(NodeDrained(node.pool_id, node.id))


def plan_maintenance(t: Transcript, command: PlanMaintenance) -> Refusal | None:
    """A node, or a level's group, is out over a span; its holders move or are told."""
    span = Timespan(command.start, command.end)
    refusal = checks.known_pool(t.ledger, command.pool_id) or checks.whole_seconds(span)
    if refusal:
        return refusal
    if span.start < t.second:
        return refuse(Reason.WINDOW_INVALID, problem="the maintenance starts in the past")
    nodes = _meant(t, command)
    if isinstance(nodes, Refusal):
        return nodes
    for node in nodes:
        for other in t.ledger.maintenances.values():
            if other.node_id == node.id and other.span.overlaps(span):
                return refuse(Reason.MAINTENANCE, start=other.start, end=other.end)
        if node.state in {NodeState.FAILED, NodeState.RETIRED}:
            return checks.wrong_state(node, "plan a maintenance of")
    if command.level is not None and command.group is not None:
        planned = DomainMaintenancePlanned(
            command.pool_id,
            command.level,
            command.group,
            MaintenanceId(t.new_id("maintenance")),
            span.start,
            span.end,
        )
        t.write(planned)
    for node in nodes:
        lose(t, Loss(node, all_slots(node), span, "maintenance"))
        maintenance_id = MaintenanceId(t.new_id(f"maintenance/{node.id}"))
        t.write(MaintenancePlanned(node.pool_id, node.id, maintenance_id, span.start, span.end))
    return None


def _meant(t: Transcript, command: PlanMaintenance) -> list[Node] | Refusal:
    """The node, or the nodes of the group, that a maintenance names."""
    if (command.node_id is None) == (command.level is None):
        problem = "name either a node or a level and its group"
        return refuse(Reason.MALFORMED, field="node_id", problem=problem)
    if command.node_id is not None:
        return _in_pool(t, command, command.node_id)
    pool = t.ledger.pools[command.pool_id]
    level = command.level or ""
    nodes = [t.ledger.nodes[node_id] for node_id in pool.nodes]
    meant = [node for node in nodes if node.group(level) == command.group]
    if not meant:
        return refuse(Reason.NOT_FOUND, kind=level, id=command.group)
    if len(meant) > MAINTENANCES_PER_COMMAND_MAX:
        return refuse(
            Reason.LIMIT,
            limit="maintenances_per_command_max",
            max=MAINTENANCES_PER_COMMAND_MAX,
            asked=len(meant),
        )
    return meant


def _in_pool(t: Transcript, command: PlanMaintenance, node_id: NodeId) -> list[Node] | Refusal:
    node = t.ledger.nodes.get(node_id)
    if node is None or node.pool_id != command.pool_id:
        return refuse(Reason.NOT_FOUND, kind="node", id=node_id)
    return [node]


def cancel_maintenance(t: Transcript, command: CancelMaintenance) -> Refusal | None:
    """A maintenance is called off, or ends early; who is short gets units back."""
    planned = t.ledger.maintenances.get(command.maintenance_id)
    if planned is None:
        return refuse(Reason.NOT_FOUND, kind="maintenance", id=command.maintenance_id)
    end_maintenance(t, planned)
    return None


def end_maintenance(t: Transcript, planned: Maintenance) -> None:
    """Free the rest of a maintenance's span."""
    at = min(t.second, planned.end)
    if planned.started:
        t.write(MaintenanceEnded(planned.pool_id, planned.node_id, planned.id), at=at)
        start_tests(t, t.ledger.nodes[planned.node_id], "maintenance")
    else:
        t.write(MaintenanceCancelled(planned.pool_id, planned.node_id, planned.id), at=at)
    heal(t, t.ledger.pools[planned.pool_id])


def retire_node(t: Transcript, command: RetireNode) -> Refusal | None:
    """A cordoned, drained or failed node without holders leaves the fleet for good."""
    refusal = checks.known_node(t.ledger, command.node_id)
    if refusal:
        return refusal
    node = t.ledger.nodes[command.node_id]
    if NodeState.RETIRED not in NODE_STEPS[node.state]:
        return checks.wrong_state(node, "retire")
    if not node.lanes.is_empty:
        return refuse(
            Reason.WRONG_STATE,
            kind="node",
            id=node.id,
            state=f"held by {len(node.holders)}",
            verb="retire",
        )
    t.write(NodeRetired(node.pool_id, node.id))
    return None

"""Deciding on what monitors report: silence, failure and return of slots, nodes and groups."""

from domain.commands.node import Health, ReportHealth
from domain.decide import checks
from domain.decide.failing import Loss, all_slots, from_now, heal, lose
from domain.decide.nodes import wrong_state
from domain.decide.transcript import Transcript
from domain.facts.level import DomainFailed, DomainRecovered
from domain.facts.node import (
    NodeFailed,
    NodeRecovered,
    NodeSuspected,
    UnitsFailed,
    UnitsRecovered,
)
from domain.fleet_state import Node
from domain.refusals import Reason, Refusal, refuse
from domain.states import NODE_STEPS, NodeState
from domain.timespan import FAR_FUTURE, Instant, seconds


def report_health(t: Transcript, command: ReportHealth) -> Refusal | None:
    """What a monitor says, unless it was heard before."""
    refusal = checks.known_pool(t.ledger, command.pool_id) or checks.name("cause", command.cause)
    if refusal:
        return refusal
    if command.stamp is not None:
        if t.ledger.is_stale(command.stamp):
            return None
        heard = (command.stamp.session, command.stamp.number)
        t.ledger.undo.put(t.ledger.reports, command.stamp.source, heard)
    if command.level is not None:
        return _group(t, command, command.level)
    if command.node_id is None:
        problem = "name a node, or a level and its group"
        return refuse(Reason.MALFORMED, field="node_id", problem=problem)
    node = t.ledger.nodes.get(command.node_id)
    if node is None or node.pool_id != command.pool_id:
        return refuse(Reason.NOT_FOUND, kind="node", id=command.node_id)
    if command.slots:
        return _slots(t, command, node)
    return _node(t, command, node)


def _node(t: Transcript, command: ReportHealth, node: Node) -> Refusal | None:
    match command.health:
        case Health.SUSPECTED:
            return _suspect(t, command, node)
        case Health.FAILED:
            if node.state is NodeState.FAILED:
                return None
            if NodeState.FAILED not in NODE_STEPS[node.state]:
                return wrong_state(node, "fail")
            fail_node(t, node, command.cause)
            return None
        case Health.RECOVERED:
            return _recover(t, command, node)


def _suspect(t: Transcript, command: ReportHealth, node: Node) -> Refusal | None:
    """A silent node keeps its holders for a grace, and is offered to nobody."""
    if node.state is NodeState.SUSPECTED:
        return None
    if NodeState.SUSPECTED not in NODE_STEPS[node.state]:
        return wrong_state(node, "suspect")
    grace = t.ledger.pools[node.pool_id].policy.suspicion_grace_seconds
    until = Instant(t.second + seconds(grace))
    t.write(NodeSuspected(node.pool_id, node.id, command.cause, command.boot_id, until))
    return None


def fail_node(t: Transcript, node: Node, cause: str) -> None:
    """A node is down: its holders move if they can, and are short if not."""
    t.write(NodeFailed(node.pool_id, node.id, cause))
    lose(t, Loss(node, all_slots(node), from_now(t, FAR_FUTURE), cause))


def _recover(t: Transcript, command: ReportHealth, node: Node) -> Refusal | None:
    """A silent or failed node is back; another boot id than before means lost work."""
    if node.state not in {NodeState.SUSPECTED, NodeState.FAILED}:
        return None
    known = node.boot_id
    lost = node.state is NodeState.FAILED or bool(
        known and command.boot_id and known != command.boot_id
    )
    t.write(NodeRecovered(node.pool_id, node.id, command.boot_id or known, lost))
    heal(t, t.ledger.pools[node.pool_id])
    return None


def _slots(t: Transcript, command: ReportHealth, node: Node) -> Refusal | None:
    """Some GPUs of a node failed or came back; the others are not touched."""
    slots = tuple(sorted(set(command.slots)))
    if slots[0] < 0 or slots[-1] >= node.gpus:
        problem = f"slots of {node.id} are 0 to {node.gpus - 1}"
        return refuse(Reason.MALFORMED, field="slots", problem=problem)
    match command.health:
        case Health.SUSPECTED:
            problem = "single slots are failed or recovered, never suspected"
            return refuse(Reason.MALFORMED, field="health", problem=problem)
        case Health.FAILED:
            fresh = tuple(slot for slot in slots if slot not in node.failed_slots)
            if fresh:
                t.write(UnitsFailed(node.pool_id, node.id, fresh, command.cause, "slot"))
                lose(t, Loss(node, frozenset(fresh), from_now(t, FAR_FUTURE), command.cause))
        case Health.RECOVERED:
            back = tuple(slot for slot in slots if slot in node.failed_slots)
            if back:
                t.write(UnitsRecovered(node.pool_id, node.id, back))
                heal(t, t.ledger.pools[node.pool_id])
    return None


def _group(t: Transcript, command: ReportHealth, level: str) -> Refusal | None:
    """A whole group failed or came back: one fact for it, and one for each of its nodes."""
    pool = t.ledger.pools[command.pool_id]
    group = command.group or ""
    members = [t.ledger.nodes[node_id] for node_id in pool.nodes]
    nodes = [node for node in members if node.group(level) == group]
    if not nodes:
        return refuse(Reason.NOT_FOUND, kind=level, id=group)
    match command.health:
        case Health.SUSPECTED:
            for node in nodes:
                if NodeState.SUSPECTED in NODE_STEPS[node.state]:
                    _suspect(t, command, node)
        case Health.FAILED:
            _fail_group(t, command, level, [n for n in nodes if _can_fail(n)])
        case Health.RECOVERED:
            down = [n for n in nodes if n.state in {NodeState.FAILED, NodeState.SUSPECTED}]
            if down:
                ids = tuple(node.id for node in down)
                t.write(DomainRecovered(command.pool_id, level, group, ids))
            for node in down:
                _recover(t, command, node)
    return None


def _can_fail(node: Node) -> bool:
    return NodeState.FAILED in NODE_STEPS[node.state]


def _fail_group(t: Transcript, command: ReportHealth, level: str, nodes: list[Node]) -> None:
    """All nodes are down before the first holder is moved, so that none moves twice."""
    if not nodes:
        return
    ids = tuple(node.id for node in nodes)
    t.write(DomainFailed(command.pool_id, level, command.group or "", ids, command.cause))
    for node in nodes:
        t.write(NodeFailed(node.pool_id, node.id, command.cause))
    for node in nodes:
        lose(t, Loss(node, all_slots(node), from_now(t, FAR_FUTURE), command.cause))

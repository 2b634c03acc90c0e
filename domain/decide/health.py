"""Deciding on what monitors report: silence, reboots, failure and return of slots, nodes, groups."""

from dataclasses import dataclass
from typing import assert_never

from domain.commands.node import Health, ReportHealth
from domain.decide import checks, timeliness
from domain.decide.accepting import start_tests
from domain.decide.breaking import trip
from domain.decide.failing import Loss, all_slots, from_now, heal, lose
from domain.decide.nodes import settle_drain
from domain.decide.transcript import Transcript
from domain.facts.hardware import ReportStamp
from domain.facts.level import DomainFailed, DomainRecovered
from domain.facts.node import (
    NodeFailed,
    NodeHeard,
    NodeRebooting,
    NodeRecovered,
    NodeSuspected,
    UnitsFailed,
    UnitsRecovered,
)
from domain.facts.request import CommandHadNoEffect
from domain.facts.reservation import ReservationInterrupted
from domain.fleet_state import Node
from domain.refusals import Reason, Refusal, refuse
from domain.states import AWAY, NODE_STEPS, RUNNING, NodeState
from domain.timespan import FAR_FUTURE, Instant, seconds

PLANNED_REBOOT = "planned-reboot"
"""The cause of a reboot that gets the longer grace."""

REBOOT_OVERDUE = "reboot-overdue"


@dataclass(frozen=True, slots=True)
class News:
    """A report that is believed: what it says, and when it occurred."""

    command: ReportHealth
    at: Instant

    @property
    def stamp(self) -> ReportStamp | None:
        """Whose report it is, and its number."""
        return self.command.stamp

    def at_node(self, node: Node) -> Instant:
        """When it counts from for a node: never from before the state that the node is in."""
        return max(self.at, node.since)


def report_health(t: Transcript, command: ReportHealth) -> Refusal | None:
    """What a monitor says, unless it was heard before, or something newer was."""
    refusal = checks.known_pool(t.ledger, command.pool_id) or checks.name("cause", command.cause)
    if refusal:
        return refusal
    nodes = _meant(t, command)
    if isinstance(nodes, Refusal):
        return nodes
    at = t.now if command.occurred_at is None else command.occurred_at
    refusal = timeliness.believable(t, nodes[0] if command.node_id else None, at, at)
    if refusal:
        return refusal
    at = min(at, t.now)
    why = timeliness.disbelief(t, command.stamp, nodes, at)
    if why:
        t.write(CommandHadNoEffect(t.command_id, "ReportHealth", why))
        return None
    news = News(command, at)
    if command.level is not None:
        _group(t, news, command.level, [node for node in nodes if node.heard_at <= at])
        return None
    (node,) = nodes
    return _slots(t, news, node) if command.slots else _node(t, news, node)


def _meant(t: Transcript, command: ReportHealth) -> list[Node] | Refusal:
    """The node, or the nodes of the group, that a report names."""
    if command.level is not None:
        group = command.group or ""
        members = (t.ledger.nodes[node_id] for node_id in t.ledger.pools[command.pool_id].nodes)
        nodes = [node for node in members if node.group(command.level) == group]
        return nodes or refuse(Reason.NOT_FOUND, kind=command.level, id=group)
    if command.node_id is None:
        problem = "name a node, or a level and its group"
        return refuse(Reason.MALFORMED, field="node_id", problem=problem)
    node = t.ledger.nodes.get(command.node_id)
    if node is None or node.pool_id != command.pool_id:
        return refuse(Reason.NOT_FOUND, kind="node", id=command.node_id)
    return [node]


def _node(t: Transcript, news: News, node: Node) -> Refusal | None:
    refusal = None
    match news.command.health:
        case Health.SUSPECTED if node.state in AWAY:
            _nothing_new(t, news, node)
        case Health.SUSPECTED:
            refusal = _suspect(t, news, node)
        case Health.REBOOTING if node.state is NodeState.REBOOTING:
            _nothing_new(t, news, node)
        case Health.REBOOTING:
            refusal = _reboot(t, news, node)
        case Health.FAILED if node.state is NodeState.FAILED:
            _nothing_new(t, news, node)
        case Health.FAILED:
            if NodeState.FAILED not in NODE_STEPS[node.state]:
                return checks.wrong_state(node, "fail")
            fail_node(t, node, news.command.cause, news.at_node(node), news.stamp)
        case Health.RECOVERED:
            _recover(t, news, node)
        case _:
            assert_never(news.command.health)
    return refusal


def _nothing_new(t: Transcript, news: News, node: Node) -> None:
    """What was known already; of a monitor that numbers its reports, it is still remembered."""
    command = news.command
    ids = (command.boot_id or node.boot_id, command.driver_load_id or node.driver_load_id)
    if news.stamp is not None or ids != (node.boot_id, node.driver_load_id):
        heard = NodeHeard(
            node.pool_id,
            node.id,
            command.health.value,
            command.boot_id,
            command.driver_load_id,
            news.stamp,
        )
        t.write(heard, at=news.at)


def _suspect(t: Transcript, news: News, node: Node) -> Refusal | None:
    """A silent node keeps its holders for a grace, and is offered to nobody."""
    if NodeState.SUSPECTED not in NODE_STEPS[node.state]:
        return checks.wrong_state(node, "suspect")
    command, at = news.command, news.at_node(node)
    grace = t.ledger.pools[node.pool_id].policy.suspicion_grace_seconds
    until = Instant(max(at - at % seconds(1) + seconds(grace), t.second))
    boot_id = command.boot_id if not node.boot_id else ""
    fact = NodeSuspected(node.pool_id, node.id, command.cause, boot_id, until, news.stamp)
    t.write(fact, at=at)
    return None


def _reboot(t: Transcript, news: News, node: Node) -> Refusal | None:
    """A node that says it boots anew is waited for longer; the work on it is lost."""
    if NodeState.REBOOTING not in NODE_STEPS[node.state]:
        return checks.wrong_state(node, "reboot")
    policy = t.ledger.pools[node.pool_id].policy
    cause, at = news.command.cause, news.at_node(node)
    planned = cause == PLANNED_REBOOT
    grace = policy.planned_reboot_grace_seconds if planned else policy.reboot_grace_seconds
    until = Instant(max(at - at % seconds(1) + seconds(grace), t.second))
    lost_at = at if node.lost_at is None else node.lost_at
    t.write(NodeRebooting(node.pool_id, node.id, cause, lost_at, until, news.stamp), at=at)
    _interrupt(t, node, lost_at, cause)
    return None


def reboot_overdue(t: Transcript, node: Node, due: Instant) -> None:
    """A reboot that took too long is silence, with the grace of silence."""
    grace = t.ledger.pools[node.pool_id].policy.suspicion_grace_seconds
    until = Instant(due + seconds(grace))
    t.write(NodeSuspected(node.pool_id, node.id, REBOOT_OVERDUE, "", until, None), at=due)


def fail_node(
    t: Transcript, node: Node, cause: str, at: Instant, stamp: ReportStamp | None = None
) -> None:
    """A node is down: its holders move if they can, and are short if not."""
    t.write(NodeFailed(node.pool_id, node.id, cause, stamp), at=at)
    trip(t, t.ledger.pools[node.pool_id])
    lose(t, Loss(node, all_slots(node), from_now(t, FAR_FUTURE), cause, waits=True))


def _recover(t: Transcript, news: News, node: Node) -> None:
    """A node is back, or was never away; another boot or driver load than before means lost work."""
    command = news.command
    anew = _is_another(node.boot_id, command.boot_id) or _is_another(
        node.driver_load_id, command.driver_load_id
    )
    if node.state not in AWAY | {NodeState.FAILED} and not anew:
        _nothing_new(t, news, node)
        return
    failed = node.state is NodeState.FAILED
    lost_at: Instant | None = None
    if node.state is NodeState.SUSPECTED:
        lost_at = node.lost_at
        anew = anew or lost_at is None
    elif node.state not in {NodeState.REBOOTING, NodeState.FAILED}:
        lost_at = news.at_node(node)
    else:
        anew = True
    recovered = NodeRecovered(
        node.pool_id,
        node.id,
        _back_to(t, node, anew=anew).value,
        command.boot_id or node.boot_id,
        command.driver_load_id or node.driver_load_id,
        anew,
        lost_at if anew else None,
        news.stamp,
    )
    t.write(recovered, at=news.at_node(node))
    if recovered.lost_at is not None:
        _interrupt(t, node, recovered.lost_at, command.cause)
    start_tests(t, node, "repair" if failed else "reboot")
    settle_drain(t, node)
    heal(t, t.ledger.pools[node.pool_id])


def _is_another(known: str, told: str) -> bool:
    return bool(known and told and known != told)


def _back_to(t: Transcript, node: Node, *, anew: bool) -> NodeState:
    """Where a node comes back to; one that booted anew is tested first, where the pool tests."""
    if node.state is NodeState.FAILED:
        back = NodeState.READY
    elif node.state in AWAY and node.state_before is not None:
        back = node.state_before
    else:
        back = node.state
    tests = t.ledger.pools[node.pool_id].policy.acceptance
    return NodeState.TESTING if anew and tests and back is NodeState.READY else back


def _interrupt(t: Transcript, node: Node, lost_at: Instant, cause: str) -> None:
    """Whoever ran on a node lost what ran there; the units stay its own."""
    for reservation_id in sorted(node.holders):
        holder = t.ledger.reservations.get(reservation_id)
        if holder is None or holder.state not in RUNNING:
            continue
        milli = sum(
            h.piece.width_milli
            for h in holder.holdings
            if h.piece.node_id == node.id and h.start <= t.second < h.end
        )
        if milli:
            since = max(lost_at, holder.start)
            t.write(ReservationInterrupted(holder.id, node.id, milli, since, cause))


def _slots(t: Transcript, news: News, node: Node) -> Refusal | None:
    """Some GPUs of a node failed or came back; the others are not touched."""
    command, at = news.command, news.at_node(node)
    slots = tuple(sorted(set(command.slots)))
    if slots[0] < 0 or slots[-1] >= node.gpus:
        problem = f"slots of {node.id} are 0 to {node.gpus - 1}"
        return refuse(Reason.MALFORMED, field="slots", problem=problem)
    if command.health in {Health.SUSPECTED, Health.REBOOTING}:
        problem = "single slots are failed or recovered, never suspected or rebooting"
        return refuse(Reason.MALFORMED, field="health", problem=problem)
    fails = command.health is Health.FAILED
    changed = tuple(slot for slot in slots if (slot in node.failed_slots) is not fails)
    if not changed:
        _nothing_new(t, news, node)
    elif fails:
        where = (node.pool_id, node.id, changed)
        t.write(UnitsFailed(*where, command.cause, "slot", news.stamp), at=at)
        lose(t, Loss(node, frozenset(changed), from_now(t, FAR_FUTURE), command.cause, waits=True))
    else:
        t.write(UnitsRecovered(node.pool_id, node.id, changed, news.stamp), at=at)
        heal(t, t.ledger.pools[node.pool_id])
    return None


def _group(t: Transcript, news: News, level: str, nodes: list[Node]) -> None:
    """A whole group failed or came back: one fact for it, and one for each of its nodes."""
    pool_id, group = news.command.pool_id, news.command.group or ""
    match news.command.health:
        case Health.SUSPECTED:
            for node in nodes:
                if NodeState.SUSPECTED in NODE_STEPS[node.state] and node.state not in AWAY:
                    _suspect(t, news, node)
        case Health.REBOOTING:
            for node in nodes:
                if NodeState.REBOOTING in NODE_STEPS[node.state]:
                    _reboot(t, news, node)
        case Health.FAILED:
            _fail_group(t, news, level, [n for n in nodes if _can_fail(n)])
        case Health.RECOVERED:
            down = [n for n in nodes if n.state in AWAY | {NodeState.FAILED}]
            if down:
                ids = tuple(node.id for node in down)
                t.write(DomainRecovered(pool_id, level, group, ids), at=news.at)
            for node in down:
                _recover(t, news, node)


def _can_fail(node: Node) -> bool:
    return NodeState.FAILED in NODE_STEPS[node.state]


def _fail_group(t: Transcript, news: News, level: str, nodes: list[Node]) -> None:
    """All nodes are down before the first holder is moved, so that none moves twice."""
    if not nodes:
        return
    command = news.command
    ids = tuple(node.id for node in nodes)
    failed = DomainFailed(command.pool_id, level, command.group or "", ids, command.cause)
    t.write(failed, at=news.at)
    for node in nodes:
        fact = NodeFailed(node.pool_id, node.id, command.cause, news.stamp)
        t.write(fact, at=news.at_node(node))
    trip(t, t.ledger.pools[command.pool_id])
    for node in nodes:
        lose(t, Loss(node, all_slots(node), from_now(t, FAR_FUTURE), command.cause, waits=True))

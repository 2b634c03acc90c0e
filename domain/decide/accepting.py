"""Acceptance: a node serves after it has passed every check of its pool, and not before."""

from domain.commands.node import ReportAcceptance, TestNode
from domain.decide import checks
from domain.decide.failing import Loss, all_slots, from_now, heal, lose
from domain.decide.transcript import Transcript
from domain.facts.node import AcceptanceFailed, AcceptancePassed, AcceptanceStarted
from domain.fleet_state import Node
from domain.refusals import Reason, Refusal, refuse
from domain.states import NodeState
from domain.timespan import FAR_FUTURE

TESTABLE = frozenset({NodeState.READY, NodeState.CORDONED, NodeState.DRAINED, NodeState.FAILED})
"""States from which an operator may have a node tested."""


def start_tests(t: Transcript, node: Node, trigger: str) -> None:
    """Say which checks a node that came into its tests has to pass."""
    if node.state is NodeState.TESTING:
        suite = t.ledger.pools[node.pool_id].policy.acceptance_checks
        t.write(AcceptanceStarted(node.pool_id, node.id, trigger, suite))


def test_node(t: Transcript, command: TestNode) -> Refusal | None:
    """An operator lets a node that nobody holds be tested again."""
    refusal = checks.known_node(t.ledger, command.node_id)
    if refusal:
        return refusal
    node = t.ledger.nodes[command.node_id]
    if node.state is not NodeState.TESTING:
        if node.state not in TESTABLE:
            return checks.wrong_state(node, "test")
        if not node.lanes.is_empty:
            held = f"held by {len(node.holders)}"
            return refuse(Reason.WRONG_STATE, kind="node", id=node.id, state=held, verb="test")
    suite = t.ledger.pools[node.pool_id].policy.acceptance_checks
    t.write(AcceptanceStarted(node.pool_id, node.id, "operator", suite))
    return None


def report_acceptance(t: Transcript, command: ReportAcceptance) -> Refusal | None:
    """A node in test serves when every check passed, and is failed when one did not."""
    refusal = checks.known_node(t.ledger, command.node_id)
    if refusal:
        return refusal
    node = t.ledger.nodes[command.node_id]
    if node.state is not NodeState.TESTING:
        return checks.wrong_state(node, "report acceptance of")
    pool = t.ledger.pools[node.pool_id]
    told = {check.check for check in command.checks}
    missing = [name for name in pool.policy.acceptance_checks if name not in told]
    failed = any(not check.passed for check in command.checks)
    if missing and not failed:
        problem = f"nothing is said of {', '.join(missing)}"
        return refuse(Reason.MALFORMED, field="checks", problem=problem)
    if failed:
        t.write(AcceptanceFailed(node.pool_id, node.id, command.checks))
        loss = Loss(node, all_slots(node), from_now(t, FAR_FUTURE), "acceptance", waits=True)
        lose(t, loss)
    else:
        t.write(AcceptancePassed(node.pool_id, node.id, command.checks))
        heal(t, pool)
    return None

"""The circuit breaker: a pool that loses too much in too short a time stands still by itself."""

from domain.decide.failing import Loss, all_slots, from_now, heal, lose
from domain.decide.transcript import Transcript
from domain.facts.pool import PoolFrozen
from domain.fleet_state import Pool
from domain.policy import Act
from domain.states import NodeState
from domain.timespan import FAR_FUTURE, seconds
from domain.units import MILLI_PER_GPU

BREAKER = "breaker"
"""The reason of a freeze that nobody asked for."""

NEVER_PERCENT = 100

_OUT = frozenset({NodeState.FAILED, NodeState.DRAINING, NodeState.DRAINED})
_ACTS = tuple(sorted({Act.REPAIR.value, Act.PREEMPT.value, Act.PLAN.value}))


def trip(t: Transcript, pool: Pool) -> None:
    """Freeze a pool in which more failed, drained or was preempted lately than its policy bears.

    Whoever runs keeps its units: what looks like a disaster may be a monitor that is wrong.
    """
    policy = pool.policy
    acts = tuple(act for act in _ACTS if act not in pool.frozen)
    if policy.breaker_percent >= NEVER_PERCENT or not acts:
        return
    start = max(t.now - seconds(policy.breaker_seconds), pool.thawed_at)
    nodes = [t.ledger.nodes[node_id] for node_id in pool.nodes]
    lost = sum(n.gpus for n in nodes if n.state in _OUT and n.since > start) * MILLI_PER_GPU
    moved = sum(milli for at, milli in pool.preempted if at > start)
    total = sum(node.gpus for node in nodes) * MILLI_PER_GPU
    if (lost + moved) * 100 > policy.breaker_percent * total:
        t.write(PoolFrozen(pool.id, acts, BREAKER, None))


def catch_up(t: Transcript, pool: Pool) -> None:
    """Do what was left undone while repair stood still: holders of what failed move or are short."""
    for node_id in sorted(pool.nodes):
        node = t.ledger.nodes[node_id]
        slots = all_slots(node) if node.state is NodeState.FAILED else node.failed_slots
        if slots and node.holders:
            lose(t, Loss(node, slots, from_now(t, FAR_FUTURE), "thaw"))
    heal(t, pool)

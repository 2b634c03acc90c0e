"""How the facts of pools, nodes, levels and hardware change the ledger."""

from domain.changes import NodeAdded, NodeOpened, SlotOpened
from domain.evolve.holding import shorten_gaps
from domain.facts import hardware, node, pool
from domain.facts.fact import OfNode
from domain.fleet_state import Maintenance, Node, Pool
from domain.ids import MaintenanceId, NodeId, ReservationId
from domain.ledger import SHARD_MILLI, Ledger
from domain.reservation import Holding
from domain.states import AWAY, BOOKABLE, NODE_STEPS, NodeState
from domain.timers import Due
from domain.timespan import MICROSECONDS, Instant, seconds
from domain.units import GPUS_PER_NODE_MAX, MILLI_PER_GPU


def pool_opened(ledger: Ledger, fact: pool.PoolOpened, at: Instant) -> None:
    """A pool begins, empty."""
    number = len(ledger.pools)
    ledger.undo.put(ledger.pools, fact.pool_id, Pool(fact.pool_id, number, fact.site, fact.policy))


def pool_policy_changed(ledger: Ledger, fact: pool.PoolPolicyChanged, at: Instant) -> None:
    """Other rules hold from now on."""
    ledger.undo.set(ledger.pools[fact.pool_id], "policy", fact.policy)


def pool_frozen(ledger: Ledger, fact: pool.PoolFrozen, at: Instant) -> None:
    """Some acts stop."""
    frozen = ledger.pools[fact.pool_id].frozen | frozenset(fact.acts)
    ledger.undo.set(ledger.pools[fact.pool_id], "frozen", frozen)


def pool_thawed(ledger: Ledger, fact: pool.PoolThawed, at: Instant) -> None:
    """Some acts go on."""
    frozen = ledger.pools[fact.pool_id].frozen - frozenset(fact.acts)
    ledger.undo.set(ledger.pools[fact.pool_id], "frozen", frozen)
    ledger.undo.set(ledger.pools[fact.pool_id], "thawed_at", at)


def preemption_ordered(ledger: Ledger, fact: pool.PreemptionOrdered, at: Instant) -> None:
    """The breaker counts what was ordered to give way."""
    home = ledger.pools[fact.pool_id]
    start = at - seconds(home.policy.breaker_seconds)
    lately = tuple(entry for entry in home.preempted if entry[0] > start)
    ledger.undo.set(home, "preempted", (*lately, (at, fact.moved_milli)))


def pool_closed(ledger: Ledger, fact: pool.PoolClosed, at: Instant) -> None:
    """A pool takes no more reservations."""
    ledger.undo.set(ledger.pools[fact.pool_id], "is_open", False)  # noqa: FBT003 - a value


def node_joined(ledger: Ledger, fact: node.NodeJoined, at: Instant) -> None:
    """A node is known, in test or ready as its pool's policy says."""
    home = ledger.pools[fact.pool_id]
    state = NodeState.TESTING if home.policy.acceptance else NodeState.READY
    joined = Node(
        fact.node_id,
        len(ledger.node_order),
        fact.pool_id,
        fact.base_milli,
        fact.model,
        fact.gpus,
        tuple((level.level, level.group) for level in fact.levels),
        fact.labels,
        state,
        joined_at=at,
        since=at,
        heard_at=Instant(at - at % MICROSECONDS),
    )
    ledger.undo.put(ledger.nodes, joined.id, joined)
    ledger.node_order.append(joined)
    ledger.undo.add(ledger.node_order.pop)
    ledger.undo.put(home.nodes, joined.id, None)
    kind = (joined.model, joined.gpus)
    ledger.undo.put(home.kinds, kind, home.kinds.get(kind, 0) + 1)
    base = max(ledger.base_milli, ledger.shard * SHARD_MILLI)
    ledger.undo.set(ledger, "base_milli", base + GPUS_PER_NODE_MAX * MILLI_PER_GPU)
    ledger.changes.append(NodeAdded(joined.index))
    if state in BOOKABLE:
        ledger.changes.append(NodeOpened(joined.index, is_open=True))


def _move(ledger: Ledger, fact: OfNode, state: NodeState, at: Instant) -> Node:
    """Let a node go to its next state, and open or close it for new holders."""
    moved = ledger.nodes[fact.node_id]
    if state is moved.state:
        return moved
    assert state in NODE_STEPS[moved.state], (moved.state, state)
    was_open, is_open = moved.state in BOOKABLE, state in BOOKABLE
    ledger.undo.set(moved, "state", state)
    ledger.undo.set(moved, "since", at)
    if was_open != is_open:
        ledger.changes.append(NodeOpened(moved.index, is_open=is_open))
    return moved


def _after_service(ledger: Ledger, fact: OfNode) -> NodeState:
    """Where a node goes that comes back: to its tests, where the pool wants them."""
    policy = ledger.pools[fact.pool_id].policy
    return NodeState.TESTING if policy.acceptance else NodeState.READY


def acceptance_started(ledger: Ledger, fact: node.AcceptanceStarted, at: Instant) -> None:
    """A node is out for tests."""
    _move(ledger, fact, NodeState.TESTING, at)


def acceptance_passed(ledger: Ledger, fact: node.AcceptancePassed, at: Instant) -> None:
    """A node serves."""
    _move(ledger, fact, NodeState.READY, at)


def acceptance_failed(ledger: Ledger, fact: node.AcceptanceFailed, at: Instant) -> None:
    """A node stays out."""
    _move(ledger, fact, NodeState.FAILED, at)


def node_cordoned(ledger: Ledger, fact: node.NodeCordoned, at: Instant) -> None:
    """No new holder."""
    _move(ledger, fact, NodeState.CORDONED, at)


def node_uncordoned(ledger: Ledger, fact: node.NodeUncordoned, at: Instant) -> None:
    """New holders again."""
    _move(ledger, fact, NodeState.READY, at)


def node_drain_started(ledger: Ledger, fact: node.NodeDrainStarted, at: Instant) -> None:
    """A node is emptying."""
    _move(ledger, fact, NodeState.DRAINING, at)


def node_drain_cancelled(ledger: Ledger, fact: node.NodeDrainCancelled, at: Instant) -> None:
    """A node serves again."""
    _move(ledger, fact, NodeState.READY, at)


def node_drained(ledger: Ledger, fact: node.NodeDrained, at: Instant) -> None:
    """A node is empty."""
    _move(ledger, fact, NodeState.DRAINED, at)


def _told(ledger: Ledger, fact: OfNode, stamp: hardware.ReportStamp | None, at: Instant) -> None:
    """A monitor spoke of a node: what it says later is newer."""
    told = ledger.nodes[fact.node_id]
    ledger.undo.set(told, "heard_at", max(told.heard_at, at))
    if stamp is not None:
        heard(ledger, stamp)


def _wait(ledger: Ledger, waited: Node, until: Instant) -> None:
    """A node is waited for; where it was before is where it comes back to."""
    if waited.state not in AWAY:
        ledger.undo.set(waited, "state_before", waited.state)
    ledger.undo.set(waited, "grace_until", until)


def node_suspected(ledger: Ledger, fact: node.NodeSuspected, at: Instant) -> None:
    """A node is silent, and a grace runs; whether its work is lost shows when it is back."""
    suspect = ledger.nodes[fact.node_id]
    _told(ledger, fact, fact.stamp, at)
    _wait(ledger, suspect, fact.grace_until)
    ledger.undo.set(suspect, "lost_at", None if suspect.state is NodeState.REBOOTING else at)
    if fact.boot_id:
        ledger.undo.set(suspect, "boot_id", fact.boot_id)
    _move(ledger, fact, NodeState.SUSPECTED, at)
    ledger.timers.set(fact.grace_until, Due.NODE_GRACE, fact.node_id)


def node_rebooting(ledger: Ledger, fact: node.NodeRebooting, at: Instant) -> None:
    """A node boots anew, and a longer grace runs; what was handed over on it is lost."""
    gone = ledger.nodes[fact.node_id]
    _told(ledger, fact, fact.stamp, at)
    _wait(ledger, gone, fact.grace_until)
    ledger.undo.set(gone, "lost_at", None)
    _dispossess_all(ledger, gone)
    _move(ledger, fact, NodeState.REBOOTING, at)
    ledger.timers.set(fact.grace_until, Due.REBOOT_GRACE, fact.node_id)


def node_failed(ledger: Ledger, fact: node.NodeFailed, at: Instant) -> None:
    """A node is down."""
    failed = ledger.nodes[fact.node_id]
    _told(ledger, fact, fact.stamp, at)
    ledger.undo.set(failed, "grace_until", None)
    ledger.undo.set(failed, "lost_at", None)
    _move(ledger, fact, NodeState.FAILED, at)


def node_recovered(ledger: Ledger, fact: node.NodeRecovered, at: Instant) -> None:
    """A node is where the fact says; what was handed over before a loss is handed over anew."""
    back = ledger.nodes[fact.node_id]
    _told(ledger, fact, fact.stamp, at)
    ledger.undo.set(back, "boot_id", fact.boot_id)
    ledger.undo.set(back, "driver_load_id", fact.driver_load_id)
    ledger.undo.set(back, "grace_until", None)
    ledger.undo.set(back, "lost_at", None)
    ledger.undo.set(back, "state_before", None)
    if fact.work_lost:
        _dispossess_all(ledger, back)
    _move(ledger, fact, NodeState(fact.state), at)


def node_heard(ledger: Ledger, fact: node.NodeHeard, at: Instant) -> None:
    """A monitor told nothing new, but perhaps which boot it is that runs."""
    _told(ledger, fact, fact.stamp, at)
    known = ledger.nodes[fact.node_id]
    ledger.undo.set(known, "boot_id", fact.boot_id or known.boot_id)
    ledger.undo.set(known, "driver_load_id", fact.driver_load_id or known.driver_load_id)


def node_retired(ledger: Ledger, fact: node.NodeRetired, at: Instant) -> None:
    """A node is gone; its base offset stays its own."""
    gone = _move(ledger, fact, NodeState.RETIRED, at)
    home = ledger.pools[fact.pool_id]
    ledger.undo.drop(home.nodes, gone.id)
    kind = (gone.model, gone.gpus)
    left = ledger.undo.drop(home.kinds, kind) - 1
    if left:
        ledger.undo.put(home.kinds, kind, left)


def units_failed(ledger: Ledger, fact: node.UnitsFailed, at: Instant) -> None:
    """Some GPUs are down."""
    hurt = ledger.nodes[fact.node_id]
    _told(ledger, fact, fact.stamp, at)
    ledger.undo.set(hurt, "failed_slots", hurt.failed_slots | frozenset(fact.slots))
    ledger.changes += [SlotOpened(hurt.index, slot, is_open=False) for slot in fact.slots]


def units_recovered(ledger: Ledger, fact: node.UnitsRecovered, at: Instant) -> None:
    """Some GPUs serve again."""
    healed = ledger.nodes[fact.node_id]
    _told(ledger, fact, fact.stamp, at)
    ledger.undo.set(healed, "failed_slots", healed.failed_slots - frozenset(fact.slots))
    ledger.changes += [SlotOpened(healed.index, slot, is_open=True) for slot in fact.slots]


def maintenance_planned(ledger: Ledger, fact: node.MaintenancePlanned, at: Instant) -> None:
    """A maintenance holds the whole node over its span."""
    home = ledger.nodes[fact.node_id]
    planned = Maintenance(fact.maintenance_id, fact.pool_id, home.id, fact.start, fact.end)
    planned.holdings = (Holding(home.piece, fact.start, fact.end, 0),)
    ledger.undo.put(ledger.maintenances, planned.id, planned)
    shorten_gaps(ledger, home, fact.start)
    ledger.hold(planned, planned.holdings)
    ledger.timers.set(fact.start, Due.MAINTENANCE_START, planned.id)
    ledger.timers.set(fact.end, Due.MAINTENANCE_END, planned.id)


def _let_go(ledger: Ledger, maintenance_id: MaintenanceId, at: Instant) -> None:
    """Free what lies ahead of a maintenance, and forget it."""
    over = ledger.undo.drop(ledger.maintenances, maintenance_id)
    for holding in over.holdings:
        ledger.release(over, (holding,), is_past=holding.end <= at)
        if holding.start < at < holding.end:
            past = Holding(holding.piece, holding.start, at, 0)
            ledger.hold(over, (past,))
            ledger.release(over, (past,), is_past=True)


def maintenance_cancelled(ledger: Ledger, fact: node.MaintenanceCancelled, at: Instant) -> None:
    """The span is bookable."""
    _let_go(ledger, fact.maintenance_id, at)


def maintenance_started(ledger: Ledger, fact: node.MaintenanceStarted, at: Instant) -> None:
    """The node is out."""
    ledger.undo.set(ledger.maintenances[fact.maintenance_id], "started", True)  # noqa: FBT003 - a value
    if NodeState.MAINTENANCE in NODE_STEPS[ledger.nodes[fact.node_id].state]:
        _move(ledger, fact, NodeState.MAINTENANCE, at)


def maintenance_ended(ledger: Ledger, fact: node.MaintenanceEnded, at: Instant) -> None:
    """The node is back."""
    _let_go(ledger, fact.maintenance_id, at)
    if ledger.nodes[fact.node_id].state is NodeState.MAINTENANCE:
        _move(ledger, fact, _after_service(ledger, fact), at)


def heard(ledger: Ledger, stamp: hardware.ReportStamp) -> None:
    """A source's reports up to this one were heard."""
    ledger.undo.put(ledger.reports, stamp.source, (stamp.session, stamp.number))


def units_applied(ledger: Ledger, fact: hardware.UnitsApplied, at: Instant) -> None:
    """A holder possesses units."""
    heard(ledger, fact.stamp)
    had = ledger.possessions.get(fact.reservation_id, {})
    ledger.undo.put(ledger.possessions, fact.reservation_id, {**had, fact.node_id: fact.pieces})


def apply_failed(ledger: Ledger, fact: hardware.ApplyFailed, at: Instant) -> None:
    """A hand-over did not happen."""
    heard(ledger, fact.stamp)


def units_freed(ledger: Ledger, fact: hardware.UnitsFreed, at: Instant) -> None:
    """A holder possesses units no more."""
    heard(ledger, fact.stamp)
    _dispossess(ledger, fact)


def release_presumed(ledger: Ledger, fact: hardware.ReleasePresumed, at: Instant) -> None:
    """A holder is taken to possess units no more."""
    _dispossess(ledger, fact)


def _dispossess(ledger: Ledger, fact: hardware.UnitsFreed | hardware.ReleasePresumed) -> None:
    _take_from(ledger, fact.reservation_id, fact.node_id)


def _dispossess_all(ledger: Ledger, node: Node) -> None:
    """Nobody possesses anything on a node that booted anew."""
    for holder in [r for r, had in ledger.possessions.items() if node.id in had]:
        _take_from(ledger, holder, node.id)


def _take_from(ledger: Ledger, holder: ReservationId, node_id: NodeId) -> None:
    had = ledger.possessions.get(holder, {})
    left = {where: pieces for where, pieces in had.items() if where != node_id}
    if left:
        ledger.undo.put(ledger.possessions, holder, left)
    elif had:
        ledger.undo.drop(ledger.possessions, holder)


def activity_observed(ledger: Ledger, fact: hardware.ActivityObserved, at: Instant) -> None:
    """Telemetry changes books, not entitlement."""
    heard(ledger, fact.stamp)

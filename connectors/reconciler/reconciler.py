"""The reconciling connector: what reservations are entitled to, against what hardware holds.

The fold of facts never touches hardware. Only `step` acts, on the difference, for facts behind
the position that it was told to begin at; so a replay or a rebuild sends nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush

from connectors.reconciler.environments import Environments
from domain.commands import Command
from domain.commands.node import ReportAcceptance, ReportHealth
from domain.commands.report import ReportApplied, ReportEnvironment, ReportFreed
from domain.facts.hardware import ReportStamp, UnitsApplied, UnitsFreed
from domain.facts.node import (
    AcceptanceFailed,
    AcceptancePassed,
    AcceptanceStarted,
    NodeFailed,
    NodeJoined,
    NodeRebooting,
    NodeRecovered,
)
from domain.facts.pool import PoolFrozen, PoolThawed
from domain.fleet import Applied, Freed, GpuFleet, HealthSeen, Observation, Tested
from domain.ids import NodeId, PoolId, ReservationId
from domain.policy import Act
from domain.provisioner import EnvironmentSeen, Provisioner
from domain.record import Recorded
from domain.timespan import Instant
from domain.units import Piece
from projections.holdings import Held, Holdings

POSSESSING = frozenset({"active", "degraded", "leaving"})
"""States in which a holder is to possess its units."""

_OUT = NodeRebooting | NodeFailed | AcceptanceStarted | AcceptanceFailed
"""Facts after which nothing is handed over on a node until it is back."""

_BEFORE_ALL = Instant(0)

Wanted = dict[NodeId, tuple[Piece, ...]]


@dataclass(slots=True)
class Reconciler:
    """Keeps a fleet in step with the ledger, and the ledger with the fleet."""

    fleet: GpuFleet
    source: str = "reconciler"
    number: int = 0
    """The number of the last report in this fleet's session."""
    _holdings: Holdings = field(default_factory=Holdings)
    _given: dict[ReservationId, Wanted] = field(default_factory=dict)
    _lost: set[tuple[NodeId, ReservationId]] = field(default_factory=set)
    """Given before a reboot: given anew when the node is back, and freed like all else when over,
    for a reboot that somebody tells of may never have been one."""
    _due: list[tuple[Instant, int, ReservationId]] = field(default_factory=list)
    _pools: dict[NodeId, PoolId] = field(default_factory=dict)
    _frozen: set[PoolId] = field(default_factory=set)
    _out: set[NodeId] = field(default_factory=set)
    _untested: dict[NodeId, tuple[str, ...]] = field(default_factory=dict)
    """Nodes in their tests, and the checks that have not been asked for yet."""
    _order: int = 0
    _learned: Instant = _BEFORE_ALL
    """What happened up to here was over when this run began: no environment ends before it."""
    provisioner: Provisioner | None = None
    _environments: Environments = field(init=False)

    def __post_init__(self) -> None:
        """Environments are set up by the provisioner, if there is one."""
        self._environments = Environments(self.provisioner)

    def learn(self, facts: Iterable[Recorded]) -> None:
        """Fold what happened before this run; hardware is not touched."""
        for recorded in facts:
            self._follow(recorded)
            self._learned = recorded.recorded_at
            fact = recorded.fact
            if isinstance(fact, UnitsApplied):
                given = self._given.setdefault(fact.reservation_id, {})
                given[fact.node_id] = fact.pieces
            elif isinstance(fact, UnitsFreed):
                self._given.get(fact.reservation_id, {}).pop(fact.node_id, None)
            if isinstance(fact, UnitsApplied | UnitsFreed) and self._is_mine(fact.stamp):
                self.number = max(self.number, fact.stamp.number)

    def given(self) -> dict[tuple[NodeId, ReservationId], tuple[Piece, ...]]:
        """What was handed over and not taken back."""
        return {
            (node_id, holder): pieces
            for holder, nodes in self._given.items()
            for node_id, pieces in nodes.items()
        }

    def _is_mine(self, stamp: ReportStamp) -> bool:
        return (stamp.source, stamp.session) == (self.source, self.fleet.session)

    def step(self, facts: Iterable[Recorded], now: Instant) -> list[Command]:
        """Act on what is new and on what falls due; the reports that come of it."""
        for recorded in facts:
            self._follow(recorded)
            self._run_due(recorded.occurred_at)
        self._run_due(now)
        while self._untested:
            self.fleet.test(*self._untested.popitem(), now)
        told = [self._told(seen, now) for seen in self._environments.observe(now)]
        return told + [each for seen in self.fleet.observe(now) for each in self._report(seen)]

    def _run_due(self, now: Instant) -> None:
        """Reconcile at each instant that has come, in order: what began and ended was both.

        At one instant all units that anyone gives up are freed before any is handed over.
        """
        while self._due and self._due[0][0] <= now:
            at = self._due[0][0]
            changed: dict[ReservationId, None] = {}
            while self._due and self._due[0][0] == at:
                changed[heappop(self._due)[2]] = None
            for reservation_id in changed:
                self._give_up(reservation_id, at)
            for reservation_id in changed:
                self._hand_over(reservation_id, at)

    def next_due(self) -> Instant | None:
        """When an entitlement changes by itself."""
        return self._due[0][0] if self._due else None

    def _follow(self, recorded: Recorded) -> None:
        """Fold a fact, and note the instants at which hardware has to change."""
        fact = recorded.fact
        if isinstance(fact, NodeJoined):
            self._pools[fact.node_id] = fact.pool_id
        elif isinstance(fact, _OUT | NodeRecovered | AcceptancePassed):
            self._node(fact, recorded.occurred_at)
        elif isinstance(fact, PoolFrozen) and Act.APPLY.value in fact.acts:
            self._frozen.add(fact.pool_id)
        elif isinstance(fact, PoolThawed) and Act.APPLY.value in fact.acts:
            self._frozen.discard(fact.pool_id)
            for held in self._holdings.by_id.values():
                self._later(recorded.occurred_at, held.reservation_id)
        self._environments.follow(fact)
        if isinstance(fact, UnitsApplied | UnitsFreed) and self._environments.of(
            fact.reservation_id
        ):
            self._later(recorded.occurred_at, fact.reservation_id)
        held_now = self._holdings.follow(recorded)
        if held_now is None or held_now.state in {"held", "confirmed", "at-risk"}:
            return
        self._later(recorded.occurred_at, held_now.reservation_id)
        for _, start, end in held_now.pieces:
            for edge in (start, end):
                if recorded.occurred_at < edge:
                    self._later(edge, held_now.reservation_id)

    def _node(self, fact: _OUT | NodeRecovered | AcceptancePassed, at: Instant) -> None:
        """A node is away or back; what it lost is handed over anew once it is back."""
        node_id = fact.node_id
        self._untested.pop(node_id, None)
        if isinstance(fact, AcceptanceStarted):
            self._untested[node_id] = fact.checks
        if isinstance(fact, NodeRebooting) or (isinstance(fact, NodeRecovered) and fact.work_lost):
            lost = {(node_id, who) for who, given in self._given.items() if node_id in given}
            self._lost |= lost
            for _, who in lost:
                self._environments.lost(who)
        if isinstance(fact, _OUT) or getattr(fact, "state", "") == "testing":
            self._out.add(node_id)
            return
        self._out.discard(node_id)
        for held in self._holdings.by_id.values():
            if any(piece.node_id == node_id for piece, _, _ in held.pieces):
                self._later(at, held.reservation_id)

    def _told(self, seen: EnvironmentSeen, now: Instant) -> Command:
        """What came of an environment as the command that tells of it; a node that is wiped is freed."""
        node_id = self._environments.wiped(seen)
        if node_id is not None:
            self.fleet.free(node_id, seen.holder, seen.occurred_at)
            for held in self._holdings.by_id.values():
                if any(piece.node_id == node_id for piece, _, _ in held.pieces):
                    self._later(max(seen.occurred_at, now), held.reservation_id)
        return ReportEnvironment(
            seen.holder,
            seen.report,
            seen.occurred_at,
            self._stamp(),
            seen.nodes,
            seen.checks,
            seen.evidence,
        )

    def _later(self, at: Instant, reservation_id: ReservationId) -> None:
        self._order += 1
        heappush(self._due, (at, self._order, reservation_id))

    def _give_up(self, reservation_id: ReservationId, at: Instant) -> None:
        """Free what a holder is no longer entitled to, or not as it has it."""
        held = self._holdings.by_id.get(reservation_id)
        given = self._given.get(reservation_id)
        if held is None or given is None:
            return
        wanted = _wanted(held, at)
        acted = max(at, self._learned)
        if held.state not in POSSESSING:
            self._environments.end(reservation_id, acted)
        for node_id in [n for n, pieces in given.items() if wanted.get(n) != pieces]:
            if not self._environments.leave(node_id, reservation_id, given[node_id], acted):
                self.fleet.free(node_id, reservation_id, at)
            del given[node_id]
            self._lost.discard((node_id, reservation_id))

    def _hand_over(self, reservation_id: ReservationId, at: Instant) -> None:
        """Hand over what a holder is entitled to and has not; forget those that are over."""
        held = self._holdings.by_id.get(reservation_id)
        if held is None:
            return
        given = self._given.setdefault(reservation_id, {})
        if held.pool_id not in self._frozen:
            for node_id, pieces in _wanted(held, at).items():
                is_new = node_id not in given or (node_id, reservation_id) in self._lost
                is_wiping = self._environments.is_wiping(node_id, pieces)
                if is_new and node_id not in self._out and not is_wiping:
                    self.fleet.apply(node_id, reservation_id, pieces, at)
                    given[node_id] = pieces
                    self._lost.discard((node_id, reservation_id))
        self._environments.settle(reservation_id, _wanted(held, at), at)
        if not given:
            del self._given[reservation_id]
            if held.state not in POSSESSING:
                del self._holdings.by_id[reservation_id]

    def _report(self, seen: Observation) -> list[Command]:
        """An observation as the command that tells of it."""
        if isinstance(seen, HealthSeen):
            pool_id = self._pools.get(seen.node_id)
            if pool_id is None:
                return []
            return [
                ReportHealth(
                    pool_id,
                    seen.health,
                    seen.cause,
                    seen.node_id,
                    seen.slots,
                    boot_id=seen.boot_id,
                    occurred_at=seen.occurred_at,
                    stamp=self._stamp(),
                )
            ]
        if isinstance(seen, Tested):
            return [ReportAcceptance(seen.node_id, seen.checks, self._stamp())]
        if not seen.pieces:
            return []
        where = (seen.node_id, seen.holder, seen.pieces, seen.occurred_at, self._stamp())
        match seen:
            case Applied(failure=failure):
                if failure:
                    self._given.get(seen.holder, {}).pop(seen.node_id, None)
                    self._lost.discard((seen.node_id, seen.holder))
                    self._later(seen.occurred_at, seen.holder)
                return [ReportApplied(*where, failure)]
            case Freed():
                return [ReportFreed(*where)]

    def _stamp(self) -> ReportStamp:
        self.number += 1
        return ReportStamp(self.source, self.fleet.session, self.number)


def _wanted(held: Held, at: Instant) -> Wanted:
    """What a holder is entitled to at an instant, by node."""
    if held.state not in POSSESSING:
        return {}
    wanted: dict[NodeId, list[Piece]] = {}
    for piece, start, end in held.pieces:
        if start <= at < end:
            wanted.setdefault(piece.node_id, []).append(piece)
    return {node_id: tuple(sorted(pieces)) for node_id, pieces in wanted.items()}

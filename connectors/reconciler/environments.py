"""Which environments are to stand where: told to a provisioner, and nothing freed before it is wiped."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from domain.environment import Environment, EnvironmentReport
from domain.facts import Fact
from domain.facts.environment import (
    EnvironmentProvisioned,
    EnvironmentRequested,
    EnvironmentTornDown,
)
from domain.facts.hardware import UnitsApplied, UnitsFreed
from domain.facts.reservation import ReservationCancelled
from domain.ids import NodeId, ReservationId
from domain.provisioner import EnvironmentSeen, Provisioner
from domain.timespan import Instant
from domain.units import Piece


@dataclass(slots=True)
class Environments:
    """The environments of one fleet. A fold of facts acts on nothing; `settle` and `leave` do."""

    provisioner: Provisioner | None = None
    _asked: dict[ReservationId, Environment] = field(default_factory=dict)
    _applied: dict[ReservationId, set[NodeId]] = field(default_factory=dict)
    _stands: dict[ReservationId, frozenset[NodeId]] = field(default_factory=dict)
    _torn_down: set[ReservationId] = field(default_factory=set)
    _wiping: dict[tuple[NodeId, ReservationId], tuple[Piece, ...]] = field(default_factory=dict)

    def follow(self, fact: Fact) -> None:
        """Fold a fact."""
        match fact:
            case EnvironmentRequested():
                self._asked[fact.reservation_id] = fact.environment
            case EnvironmentProvisioned():
                self._stands[fact.reservation_id] = frozenset(fact.nodes)
            case EnvironmentTornDown():
                self._torn_down.add(fact.reservation_id)
            case ReservationCancelled():
                self._forget(fact.reservation_id)
            case UnitsApplied() if fact.reservation_id in self._asked:
                self._applied.setdefault(fact.reservation_id, set()).add(fact.node_id)
            case UnitsFreed() if fact.reservation_id in self._asked:
                nodes = self._applied.get(fact.reservation_id, set())
                nodes.discard(fact.node_id)
                if not nodes and fact.reservation_id in self._torn_down:
                    self._forget(fact.reservation_id)

    def _forget(self, holder: ReservationId) -> None:
        self._asked.pop(holder, None)
        self._applied.pop(holder, None)
        self._stands.pop(holder, None)
        self._torn_down.discard(holder)

    def of(self, holder: ReservationId) -> Environment | None:
        """What a holder asked for, if it asked for any."""
        return self._asked.get(holder)

    def lost(self, holder: ReservationId) -> None:
        """A node of it lost what ran: it is to be set up again once the units are back."""
        self._stands.pop(holder, None)

    def settle(self, holder: ReservationId, wanted: Iterable[NodeId], at: Instant) -> None:
        """Set an environment up once its holder has all the nodes that it is entitled to now."""
        environment = self._asked.get(holder)
        nodes = frozenset(wanted)
        if environment is None or self.provisioner is None or not nodes:
            return
        if self._applied.get(holder, set()) == nodes and self._stands.get(holder) != nodes:
            self._stands[holder] = nodes
            self.provisioner.provision(holder, environment, tuple(sorted(nodes)), at)

    def leave(
        self, node_id: NodeId, holder: ReservationId, pieces: tuple[Piece, ...], at: Instant
    ) -> bool:
        """Wipe a node that a holder leaves; false when there is nothing to wipe."""
        environment = self._asked.get(holder)
        if environment is None or self.provisioner is None:
            return False
        self._wiping[node_id, holder] = pieces
        self.provisioner.wipe(node_id, holder, environment, at)
        return True

    def end(self, holder: ReservationId, at: Instant) -> None:
        """Tear an environment down whose holder gives up everything."""
        is_known = holder in self._asked and holder not in self._torn_down
        if is_known and self.provisioner is not None:
            self.provisioner.tear_down(holder, at)

    def is_wiping(self, node_id: NodeId, pieces: tuple[Piece, ...]) -> bool:
        """Whether units are still being wiped behind somebody."""
        return any(
            where == node_id and any(one.overlaps(other) for one in left for other in pieces)
            for (where, _), left in self._wiping.items()
        )

    def observe(self, now: Instant) -> list[EnvironmentSeen]:
        """What the provisioner has to tell."""
        return [] if self.provisioner is None else list(self.provisioner.observe(now))

    def wiped(self, seen: EnvironmentSeen) -> NodeId | None:
        """The node that can be freed now, when an observation says so."""
        if seen.report is not EnvironmentReport.WIPED:
            return None
        (node_id,) = seen.nodes
        return node_id if self._wiping.pop((node_id, seen.holder), None) is not None else None

"""Nodes that exist in memory: they take a while to hand units over, and sometimes they break."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from domain.commands.node import Health
from domain.facts.node import CheckReport
from domain.fleet import Applied, DoubleHold, Freed, HealthSeen, Observation, Tested
from domain.ids import NodeId, ReservationId
from domain.timespan import MICROSECONDS, Instant
from domain.units import Piece

Holding = tuple[NodeId, ReservationId]

REPAIR_SECONDS = (8 * 60, 15 * 60)
"""How long a node is away after a fault by chance: at least, at most."""


@dataclass(frozen=True, slots=True)
class Delays:
    """How long hardware takes, in milliseconds: fixed, and up to so much more by chance."""

    apply_ms: int = 0
    free_ms: int = 0
    spread_ms: int = 0
    test_ms: int = 0


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """Something that happens to a node at an instant; without slots, to all of it."""

    at: Instant
    node_id: NodeId
    health: Health
    cause: str = "fault"
    slots: tuple[int, ...] = ()
    boot_id: str = ""


@dataclass(slots=True)
class SimulatedFleet:
    """Hardware by seed: equal seeds and equal intents give equal observations."""

    seed: int = 0
    delays: Delays = Delays()
    faults: Iterable[Fault] = ()
    apply_failure: float = 0.0
    """How often a hand-over fails, from 0 to 1."""
    failing: Mapping[NodeId, Sequence[str]] = field(default_factory=dict)
    """The checks that nodes do not pass."""
    session: str = "1"
    _random: Random = field(init=False)
    _held: dict[Holding, tuple[Piece, ...]] = field(default_factory=dict)
    _freeing: dict[Holding, Instant] = field(default_factory=dict)
    _coming: list[tuple[Instant, int, Observation]] = field(default_factory=list)
    _boots: dict[NodeId, str] = field(default_factory=dict)
    _number: int = 0

    def __post_init__(self) -> None:
        """Put the faults that are planned on their way."""
        self._random = Random(self.seed)  # noqa: S311 - a simulation
        for fault in sorted(self.faults):
            self._tell(
                HealthSeen(
                    fault.node_id,
                    fault.slots,
                    fault.health,
                    fault.cause,
                    fault.boot_id,
                    fault.at,
                )
            )

    def _tell(self, observation: Observation) -> None:
        self._number += 1
        heappush(self._coming, (observation.occurred_at, self._number, observation))

    def _delay(self, milliseconds: int) -> int:
        extra = self._random.randint(0, self.delays.spread_ms) if self.delays.spread_ms else 0
        return (milliseconds + extra) * 1000

    def apply(
        self, node_id: NodeId, holder: ReservationId, pieces: tuple[Piece, ...], at: Instant
    ) -> None:
        """Hand units over, once those who are leaving them have left."""
        have = self._held.get((node_id, holder))
        if have == pieces and (node_id, holder) not in self._freeing:
            self._tell(Applied(node_id, holder, pieces, at))
            return
        begin = at
        for (where, other), taken in self._held.items():
            if where != node_id or other == holder or not _overlap(taken, pieces):
                continue
            leaves = self._freeing.get((where, other))
            if leaves is None:
                raise DoubleHold(f"{node_id} has {other} on units that {holder} wants")
            begin = max(begin, leaves)
        if self.apply_failure and self._random.random() < self.apply_failure:
            self._tell(Applied(node_id, holder, pieces, begin, "apply-failed"))
            return
        self._held[node_id, holder] = pieces
        self._freeing.pop((node_id, holder), None)
        done = Instant(begin + self._delay(self.delays.apply_ms))
        self._tell(Applied(node_id, holder, pieces, done))

    def free(self, node_id: NodeId, holder: ReservationId, at: Instant) -> None:
        """Take a holder's units on a node back."""
        pieces = self._held.get((node_id, holder), ())
        if (node_id, holder) in self._freeing:
            return
        done = Instant(at + (self._delay(self.delays.free_ms) if pieces else 0))
        self._freeing[node_id, holder] = done
        self._tell(Freed(node_id, holder, pieces, done))

    def test(self, node_id: NodeId, checks: Sequence[str], at: Instant) -> None:
        """Run checks: those that a node is to fail fail."""
        failing = self.failing.get(node_id, ())
        told = tuple(
            CheckReport(name, name not in failing, "as it was told to" if name in failing else "")
            for name in checks
        )
        self._tell(Tested(node_id, told, Instant(at + self._delay(self.delays.test_ms))))

    def observe(self, until: Instant) -> list[Observation]:
        """What has happened up to an instant and was not told before."""
        seen: list[Observation] = []
        while self._coming and self._coming[0][0] <= until:
            observation = heappop(self._coming)[2]
            if isinstance(observation, Freed):
                self._forget(observation)
            elif isinstance(observation, HealthSeen):
                self._boot(observation)
            seen.append(observation)
        return seen

    def _boot(self, seen: HealthSeen) -> None:
        """A node that boots anew holds nothing: what it had is to be handed over again."""
        known = self._boots.get(seen.node_id, seen.boot_id)
        self._boots[seen.node_id] = seen.boot_id or known
        if seen.health is Health.REBOOTING or (seen.boot_id and known and seen.boot_id != known):
            for key in [key for key in self._held if key[0] == seen.node_id]:
                del self._held[key]

    def _forget(self, freed: Freed) -> None:
        key = (freed.node_id, freed.holder)
        if self._freeing.get(key) == freed.occurred_at:
            del self._freeing[key]
            self._held.pop(key, None)

    def next_observation(self) -> Instant | None:
        """When something will have happened that was not told yet."""
        return self._coming[0][0] if self._coming else None

    def adopt(self, held: Mapping[Holding, tuple[Piece, ...]]) -> None:
        """Hold what was held before a restart, without reporting it again."""
        self._held.update(held)

    def held(self) -> Mapping[Holding, tuple[Piece, ...]]:
        """What the hardware itself holds now."""
        return {key: pieces for key, pieces in self._held.items() if key not in self._freeing}


def _overlap(some: tuple[Piece, ...], others: tuple[Piece, ...]) -> bool:
    return any(piece.overlaps(other) for piece in some for other in others)


def faults_by_chance(
    nodes: Iterable[NodeId], seed: int, start: Instant, end: Instant, mean_hours: float
) -> list[Fault]:
    """Failures of single nodes and their return, exponentially apart, drawn from a seed."""
    random = Random(seed)  # noqa: S311 - a simulation
    faults: list[Fault] = []
    for node_id in nodes:
        at = start
        boots = 0
        while True:
            at = Instant(at + round(random.expovariate(1 / mean_hours) * 3600) * MICROSECONDS)
            if at >= end:
                break
            boots += 1
            back = Instant(at + random.randint(*REPAIR_SECONDS) * MICROSECONDS)
            faults.append(Fault(at, node_id, Health.FAILED, "chance"))
            boot = f"{node_id}-boot-{boots}"
            faults.append(Fault(back, node_id, Health.RECOVERED, "repaired", (), boot))
            at = back
    return faults

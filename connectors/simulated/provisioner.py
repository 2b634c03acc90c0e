"""Environments that exist in memory: they take a while to stand, and leave evidence of their going."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from domain.environment import ENVIRONMENT_CHECKS, Environment, EnvironmentReport, Orchestrator
from domain.facts.node import CheckReport
from domain.ids import NodeId, ReservationId
from domain.provisioner import EnvironmentSeen
from domain.timespan import Instant


@dataclass(frozen=True, slots=True)
class Pace:
    """How long each act takes, in milliseconds."""

    provision_ms: int = 0
    tear_down_ms: int = 0
    wipe_ms: int = 0


@dataclass(slots=True)
class SimulatedProvisioner:
    """Equal intents give equal observations."""

    pace: Pace = Pace()
    failing: Sequence[Orchestrator] = ()
    """Those whose control plane never comes up."""
    _down: dict[ReservationId, Instant] = field(default_factory=dict)
    """Until when an environment is being torn down: no wipe begins before."""
    _coming: list[tuple[Instant, int, EnvironmentSeen]] = field(default_factory=list)
    _number: int = 0

    def _tell(self, seen: EnvironmentSeen) -> None:
        self._number += 1
        heappush(self._coming, (seen.occurred_at, self._number, seen))

    def provision(
        self,
        holder: ReservationId,
        environment: Environment,
        nodes: tuple[NodeId, ...],
        at: Instant,
    ) -> None:
        """It stands after a while, and is checked at once."""
        done = Instant(at + self.pace.provision_ms * 1000)
        stands = {"orchestrator": environment.orchestrator.value, "endpoint": f"sim://{holder}"}
        self._tell(
            EnvironmentSeen(holder, EnvironmentReport.PROVISIONED, done, nodes, evidence=stands)
        )
        fails = environment.orchestrator in self.failing
        checks = tuple(
            CheckReport(name, not (fails and name == "control-plane"), "")
            for name in ENVIRONMENT_CHECKS
        )
        self._tell(EnvironmentSeen(holder, EnvironmentReport.CHECKED, done, checks=checks))

    def tear_down(self, holder: ReservationId, at: Instant) -> None:
        """It is gone after a while; what it was about to tell is not told any more."""
        if holder in self._down:
            return
        self._coming = sorted(one for one in self._coming if not _is_rise(one[2], holder))
        done = Instant(at + self.pace.tear_down_ms * 1000)
        self._down[holder] = done
        self._tell(EnvironmentSeen(holder, EnvironmentReport.TORN_DOWN, done))

    def wipe(
        self, node_id: NodeId, holder: ReservationId, environment: Environment, at: Instant
    ) -> None:
        """Its scratch is overwritten, and a digest over what is left shows it."""
        begin = max(at, self._down.get(holder, at))
        done = Instant(begin + self.pace.wipe_ms * 1000)
        evidence = {
            "method": "simulated-overwrite",
            "scratch_gib": str(environment.scratch_gib),
            "digest": hashlib.sha256(f"{node_id} without {holder}".encode()).hexdigest(),
        }
        if environment.volume:
            evidence["kept_volume"] = environment.volume
        self._tell(
            EnvironmentSeen(holder, EnvironmentReport.WIPED, done, (node_id,), evidence=evidence)
        )

    def observe(self, until: Instant) -> list[EnvironmentSeen]:
        """What has happened up to an instant and was not told before."""
        seen: list[EnvironmentSeen] = []
        while self._coming and self._coming[0][0] <= until:
            seen.append(heappop(self._coming)[2])
        return seen

    def next_observation(self) -> Instant | None:
        """When something will have happened that was not told yet."""
        return self._coming[0][0] if self._coming else None


def _is_rise(seen: EnvironmentSeen, holder: ReservationId) -> bool:
    rises = {EnvironmentReport.PROVISIONED, EnvironmentReport.CHECKED}
    return seen.holder == holder and seen.report in rises

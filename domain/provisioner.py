"""The port to what sets environments up: intents go out, observations come back, later and maybe twice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from domain.environment import Environment, EnvironmentReport
from domain.facts.node import CheckReport
from domain.ids import NodeId, ReservationId
from domain.timespan import Instant


@dataclass(frozen=True, slots=True)
class EnvironmentSeen:
    """Something came of an environment."""

    holder: ReservationId
    report: EnvironmentReport
    occurred_at: Instant
    nodes: tuple[NodeId, ...] = ()
    checks: tuple[CheckReport, ...] = ()
    evidence: Mapping[str, str] = field(default_factory=dict)


class Provisioner(Protocol):
    """What sets environments up on nodes that a holder has, and leaves nothing behind.

    Intents are idempotent: what is already so is told again and changes nothing.
    """

    def provision(
        self,
        holder: ReservationId,
        environment: Environment,
        nodes: tuple[NodeId, ...],
        at: Instant,
    ) -> None:
        """Let an environment stand on exactly these nodes, and check it."""
        ...

    def tear_down(self, holder: ReservationId, at: Instant) -> None:
        """End an environment; its nodes are wiped one by one."""
        ...

    def wipe(
        self, node_id: NodeId, holder: ReservationId, environment: Environment, at: Instant
    ) -> None:
        """Leave nothing of an environment on a node; what is the tenant's own volume stays."""
        ...

    def observe(self, until: Instant) -> Sequence[EnvironmentSeen]:
        """What has happened up to an instant and was not told before, in its order."""
        ...

    def next_observation(self) -> Instant | None:
        """When there will be something to tell, if that is known."""
        ...

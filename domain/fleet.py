"""The port to hardware: intents go out, observations come back, later and maybe twice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from domain.commands.node import Health
from domain.facts.node import CheckReport
from domain.ids import NodeId, ReservationId
from domain.timespan import Instant
from domain.units import Piece


@dataclass(frozen=True, slots=True)
class Applied:
    """Units of a node were handed to their holder; `failure` says why not."""

    node_id: NodeId
    holder: ReservationId
    pieces: tuple[Piece, ...]
    occurred_at: Instant
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Freed:
    """Units of a node are free of their holder, and clean."""

    node_id: NodeId
    holder: ReservationId
    pieces: tuple[Piece, ...]
    occurred_at: Instant


@dataclass(frozen=True, slots=True)
class HealthSeen:
    """A node, or some GPUs of it, fell silent, failed or came back."""

    node_id: NodeId
    slots: tuple[int, ...]
    health: Health
    cause: str
    boot_id: str
    occurred_at: Instant


@dataclass(frozen=True, slots=True)
class Tested:
    """The acceptance checks of a node ran, and what each found."""

    node_id: NodeId
    checks: tuple[CheckReport, ...]
    occurred_at: Instant


Observation = Applied | Freed | HealthSeen | Tested


class DoubleHold(Exception):
    """Hardware was asked to give units to a second holder: it refuses."""


class GpuFleet(Protocol):
    """Hardware that can hand units to a holder and take them back.

    Intents are idempotent: what is already so is reported again and changes nothing.
    """

    session: str
    """Begins anew when the fleet forgot what it had reported."""

    def apply(
        self, node_id: NodeId, holder: ReservationId, pieces: tuple[Piece, ...], at: Instant
    ) -> None:
        """Hand units over once they are free. Raises `DoubleHold` for units not being freed."""
        ...

    def free(self, node_id: NodeId, holder: ReservationId, at: Instant) -> None:
        """Take a holder's units on a node back, and clean them."""
        ...

    def test(self, node_id: NodeId, checks: Sequence[str], at: Instant) -> None:
        """Run acceptance checks on a node; a check that is not known fails, and says so."""
        ...

    def observe(self, until: Instant) -> Sequence[Observation]:
        """What has happened up to an instant and was not told before, in its order."""
        ...

    def held(self) -> Mapping[tuple[NodeId, ReservationId], tuple[Piece, ...]]:
        """What the hardware itself holds now, for whom."""
        ...

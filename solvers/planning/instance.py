"""An instance of the planning problem and a plan for it, as plain values.

Times are integers and windows half-open. Nothing migrates: a reservation keeps its units from its
start to its end.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

NODES_MAX = 20_000
RESERVATIONS_MAX = 250_000
NODE_GPUS_MAX = 64
TIME_MAX = 1 << 40
"""Instants lie between minus this and this."""
VALUE_MAX = 10**12


class Why(StrEnum):
    """Why a reservation has no place in a plan."""

    WINDOW = "window"
    """It lasts longer than its window."""
    MODEL = "model"
    """No node of its models is large enough; others are."""
    TOPOLOGY = "topology"
    """It would fit if its nodes could lie in several racks."""
    MAINTENANCE = "maintenance"
    """It would fit if no node were down."""
    QUOTA = "quota"
    """It would fit if its tenant had more quota."""
    ISOLATION = "isolation"
    """It would fit if tenants could share nodes."""
    CAPACITY = "capacity"
    """What it needs is held by others, or does not exist."""


@dataclass(frozen=True, slots=True)
class InstanceNode:
    """A machine: its rack, model and GPUs, and the spans in which it takes nobody."""

    id: str
    rack: str
    model: str
    gpus: int
    down: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class InstanceAsk:
    """A reservation: `gpus` on one node, or `nodes` whole nodes; one of the two is 0."""

    id: str
    tenant: str
    gpus: int
    nodes: int
    release: int
    deadline: int
    duration: int
    value: int
    exclusive: bool = False
    one_rack: bool = False
    models: tuple[str, ...] | None = None
    at: tuple[str, ...] = ()
    """The nodes where it is already planned."""
    move_cost: int = 1
    started: bool = False
    """It runs since its release: it keeps its nodes, or is dropped."""

    @property
    def latest(self) -> int:
        """Its latest start; before its release where it has no room at all."""
        return self.release if self.started else self.deadline - self.duration


@dataclass(frozen=True, slots=True)
class Instance:
    """Nodes, reservations, and the most GPUs that a tenant may use at once."""

    name: str
    nodes: tuple[InstanceNode, ...]
    asks: tuple[InstanceAsk, ...]
    quota: Mapping[str, int]
    min_moves: bool = False
    """Whether few moves are part of the objective, below value."""


@dataclass(frozen=True, slots=True)
class Placed:
    """An accepted reservation: its start, and on each node the GPUs that it holds, as bits."""

    id: str
    start: int
    pieces: tuple[tuple[str, int], ...]

    def units(self) -> Iterator[tuple[str, int]]:
        """Every GPU that it holds, as (node, index)."""
        for node, bits in self.pieces:
            for index in range(bits.bit_length()):
                if bits >> index & 1:
                    yield node, index


@dataclass(frozen=True, slots=True)
class InstancePlan:
    """A plan: who goes where, who is refused and why, and the most that any plan could be worth."""

    name: str
    value: int
    accepted: tuple[Placed, ...]
    refused: tuple[tuple[str, Why], ...]
    moves: int
    bound: int
    evidence: Mapping[str, str]


def moves_of(ask: InstanceAsk, nodes: Iterable[str]) -> int:
    """How many of these nodes an already planned reservation did not have."""
    return len(set(nodes) - set(ask.at)) if ask.at else 0

"""How much is asked for, and what it must look like."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from domain.units import MILLI_PER_GPU


class ReservationClass(StrEnum):
    """On whose account a reservation stands."""

    GUARANTEED = "guaranteed"
    BORROWED = "borrowed"
    OVERFLOW = "overflow"


@dataclass(frozen=True, slots=True)
class Size:
    """An ask: whole nodes, GPUs on one further node, or a share of one GPU.

    More GPUs than a node of the pool has become whole nodes and one remainder.
    """

    gpus: int = 0
    nodes: int = 0
    share_milli: int = 0


@dataclass(frozen=True, slots=True)
class Shape:
    """What the units must be like: models (any of), labels (all of), one group of a level."""

    models: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    same_level: str | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """A size fitted to a pool's nodes: `nodes` whole nodes of `node_gpus`, then a remainder."""

    nodes: int
    node_gpus: int
    gpus: int
    share_milli: int

    @property
    def milli(self) -> int:
        """All of it, in milli-GPU."""
        return (self.nodes * self.node_gpus + self.gpus) * MILLI_PER_GPU + self.share_milli


def parts_of(size: Size, node_gpus: int) -> Parts:
    """Split a size by the GPUs of one node of the pool; a full remainder is a whole node."""
    extra, gpus = divmod(size.gpus, node_gpus)
    return Parts(size.nodes + extra, node_gpus, gpus, size.share_milli)

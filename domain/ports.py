"""What the domain needs of the world, each named for the part that it plays."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from domain.ids import TenantId
from domain.sizes import Parts
from domain.timespan import Instant, Timespan
from domain.units import Piece


class Clock(Protocol):
    """The one place where time is read."""

    def now(self) -> Instant:
        """The present instant."""
        ...


class Placer(Protocol):
    """A quick and exact index of what is free; it proposes units, the domain checks them.

    `models` empty means any; `among` None means any node, else only those;
    `without` are nodes that were tried already.
    A None is a proof that nothing fits, under the same restrictions.
    """

    def find_gpus(
        self,
        count: int,
        span: Timespan,
        *,
        pool: int,
        models: tuple[str, ...],
        among: Sequence[int] | None,
        without: Sequence[int],
    ) -> tuple[int, int] | None:
        """One node's index and a mask of `count` of its GPUs that are free throughout."""
        ...

    def find_nodes(
        self,
        count: int,
        span: Timespan,
        *,
        pool: int,
        node_gpus: int,
        models: tuple[str, ...],
        level: str | None,
        among: Sequence[int] | None,
        without: Sequence[int],
    ) -> tuple[int, ...] | None:
        """Indexes of `count` whole nodes of `node_gpus` GPUs, in one group of a level if named."""
        ...

    def find_share(
        self,
        width_milli: int,
        span: Timespan,
        *,
        pool: int,
        owner: TenantId,
        models: tuple[str, ...],
        among: Sequence[int] | None,
        without: Sequence[int],
    ) -> tuple[int, int] | None:
        """A node's index and a GPU with that much free at each instant, held by no one else."""
        ...

    def add_node(
        self, index: int, *, pool: int, gpus: int, model: str, levels: Iterable[tuple[str, str]]
    ) -> None:
        """Know a node; it is closed until opened."""
        ...

    def drop_node(self, index: int) -> None:
        """Forget the node that was added last (the inverse of `add_node`)."""
        ...

    def set_open(self, index: int, *, is_open: bool) -> None:
        """Whether a node may get new holders."""
        ...

    def set_slot_open(self, index: int, slot: int, *, is_open: bool) -> None:
        """Whether a GPU may get new holders."""
        ...

    def hold(self, index: int, piece: Piece, span: Timespan, owner: TenantId | None) -> None:
        """Units are taken over a span."""
        ...

    def release(self, index: int, piece: Piece, span: Timespan, owner: TenantId | None) -> None:
        """The exact inverse of a hold."""
        ...

    def advance(self, now: Instant) -> None:
        """Time went on; what ended before it need not be known any more."""
        ...

    def tightest(
        self, span: Timespan, *, pool: int, models: tuple[str, ...]
    ) -> tuple[Instant, int]:
        """The instant of a span with the fewest GPUs free in a pool, and how many they are."""
        ...

    def earliest(
        self,
        parts: Parts,
        microseconds: int,
        within: Timespan,
        *,
        pool: int,
        owner: TenantId,
        models: tuple[str, ...],
        limit: int,
    ) -> tuple[Instant, ...]:
        """The first starts in a span from which a size fits for so long, earliest first."""
        ...

"""The domain's `Placer`, over one index for each pool."""

from collections.abc import Iterable, Sequence

from domain.ids import TenantId
from domain.sizes import Parts
from domain.timespan import MICROSECONDS, Instant, Timespan
from domain.units import Piece
from solvers.placement.index import PlacementIndex, Words

NOBODY = -1
"""The owner's number of what is no tenant's, such as a maintenance."""


class LedgerPlacer:
    """Knows what the ledger told it, and answers in its numbers: node indexes of the shard."""

    def __init__(self, origin: Instant) -> None:
        """Begin with no pool; nothing that is asked lies before `origin` by much."""
        self._origin = origin // MICROSECONDS
        self._pools: dict[int, PlacementIndex] = {}
        self._places: list[tuple[PlacementIndex, int]] = []
        self._shard_index: dict[tuple[int, int], int] = {}
        self._owners: dict[TenantId, int] = {}

    def _pool(self, pool: int) -> PlacementIndex:
        index = self._pools.get(pool)
        if index is None:
            index = self._pools[pool] = PlacementIndex(self._origin)
        return index

    def _owner(self, owner: TenantId | None) -> int:
        if owner is None:
            return NOBODY
        return self._owners.setdefault(owner, len(self._owners))

    def add_node(
        self, index: int, *, pool: int, gpus: int, model: str, levels: Iterable[tuple[str, str]]
    ) -> None:
        """Know a node; it is closed until opened."""
        assert index == len(self._places), "nodes are told in the order of their indexes"
        of_pool = self._pool(pool)
        local = of_pool.add_node(gpus, model, levels)
        self._places.append((of_pool, local))
        self._shard_index[id(of_pool), local] = index

    def drop_node(self, index: int) -> None:
        """Forget the node that was added last."""
        of_pool, local = self._places.pop()
        assert index == len(self._places)
        del self._shard_index[id(of_pool), local]
        of_pool.drop_node()

    def set_open(self, index: int, *, is_open: bool) -> None:
        """Let a node take new holders, or not."""
        of_pool, local = self._places[index]
        of_pool.set_open(local, is_open=is_open)

    def set_slot_open(self, index: int, slot: int, *, is_open: bool) -> None:
        """Let a GPU take new holders, or not."""
        of_pool, local = self._places[index]
        of_pool.set_slot_open(local, slot, is_open=is_open)

    def hold(self, index: int, piece: Piece, span: Timespan, owner: TenantId | None) -> None:
        """Units are taken over a span."""
        of_pool, local = self._places[index]
        start, end = span.start // MICROSECONDS, span.end // MICROSECONDS
        of_pool.hold(local, piece.first_milli, piece.width_milli, start, end, self._owner(owner))

    def release(self, index: int, piece: Piece, span: Timespan, owner: TenantId | None) -> None:
        """The exact inverse of a hold."""
        of_pool, local = self._places[index]
        start, end = span.start // MICROSECONDS, span.end // MICROSECONDS
        of_pool.release(local, piece.first_milli, piece.width_milli, start, end, self._owner(owner))

    def advance(self, now: Instant) -> None:
        """Time went on."""
        for index in self._pools.values():
            index.advance(now // MICROSECONDS)

    def _local(self, of_pool: PlacementIndex, nodes: Sequence[int]) -> list[int]:
        places = (self._places[node] for node in nodes)
        return [local for home, local in places if home is of_pool]

    def _denied(
        self,
        of_pool: PlacementIndex,
        models: tuple[str, ...],
        among: Sequence[int] | None,
        without: Sequence[int],
        node_gpus: int | None = None,
    ) -> Words:
        chosen = None if among is None else self._local(of_pool, among)
        return of_pool.denied(models, chosen, self._local(of_pool, without), node_gpus)

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
        of_pool = self._pool(pool)
        denied = self._denied(of_pool, models, among, without)
        start, end = span.start // MICROSECONDS, span.end // MICROSECONDS
        found = of_pool.find_gpus(count, start, end, denied)
        if found is None:
            return None
        return self._shard_index[id(of_pool), found[0]], found[1]

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
        of_pool = self._pool(pool)
        denied = self._denied(of_pool, models, among, without, node_gpus)
        start, end = span.start // MICROSECONDS, span.end // MICROSECONDS
        found = of_pool.find_nodes(count, start, end, denied, level)
        if found is None:
            return None
        return tuple(self._shard_index[id(of_pool), local] for local in found)

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
        of_pool = self._pool(pool)
        denied = self._denied(of_pool, models, among, without)
        start, end = span.start // MICROSECONDS, span.end // MICROSECONDS
        found = of_pool.find_share(width_milli, start, end, self._owner(owner), denied)
        if found is None:
            return None
        return self._shard_index[id(of_pool), found[0]], found[1]

    def tightest(
        self, span: Timespan, *, pool: int, models: tuple[str, ...]
    ) -> tuple[Instant, int]:
        """An instant of a span with the fewest GPUs free in a pool, and how many they are."""
        of_pool = self._pool(pool)
        start, end = span.start // MICROSECONDS, span.end // MICROSECONDS
        at, free = of_pool.tightest(start, end, of_pool.denied(models, None, ()))
        return Instant(at * MICROSECONDS), free

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
        of_pool = self._pool(pool)
        after, before = within.start // MICROSECONDS, within.end // MICROSECONDS
        found: list[Instant] = []
        for second in [after, *of_pool.ends(after, before)]:
            start = Instant(second * MICROSECONDS)
            span = Timespan(start, Instant(start + microseconds))
            if self._fits(parts, span, pool=pool, owner=owner, models=models):
                found.append(start)
                if len(found) == limit:
                    break
        return tuple(found)

    def _fits(
        self, parts: Parts, span: Timespan, *, pool: int, owner: TenantId, models: tuple[str, ...]
    ) -> bool:
        """Whether a size fits over a span."""
        if parts.share_milli:
            share = self.find_share(
                parts.share_milli,
                span,
                pool=pool,
                owner=owner,
                models=models,
                among=None,
                without=(),
            )
            return share is not None
        nodes: tuple[int, ...] | None = ()
        if parts.nodes:
            nodes = self.find_nodes(
                parts.nodes,
                span,
                pool=pool,
                node_gpus=parts.node_gpus,
                models=models,
                level=None,
                among=None,
                without=(),
            )
        if nodes is None:
            return False
        if not parts.gpus:
            return True
        rest = self.find_gpus(parts.gpus, span, pool=pool, models=models, among=None, without=nodes)
        return rest is not None

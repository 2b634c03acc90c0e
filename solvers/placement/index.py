"""The index of one pool: holds and releases in step with the ledger, questions in microseconds.

Nodes are numbered by the caller from 0. A None is a proof: where the slots cannot tell, the
exact holds decide. Horizon and slot width cost speed, never truth.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from solvers.placement import holds as kernels
from solvers.placement.holds import COLUMNS, END, NEXT, NIL, START, WHOLE
from solvers.placement.rows import BLOCK

SLOT_SECONDS = 900
HORIZON_SLOTS = 2880
CELLS_FIRST = 1024
NODES_FIRST = 64
GPUS_MAX = 8
"""GPUs of a node, one bit each."""
EARLIEST_TRIED_MAX = 64
TIGHT_INSTANTS_MAX = 8

Words = NDArray[np.uint64]


class PlacementIndex:
    """Which GPUs of a pool are free throughout a span of whole seconds."""

    def __init__(
        self,
        origin: int,
        *,
        slot_seconds: int = SLOT_SECONDS,
        horizon_slots: int = HORIZON_SLOTS,
    ) -> None:
        """Begin with no node; `origin` is a second since 1970 at or before the first span."""
        self.slot_seconds = slot_seconds
        self.slots = -(-horizon_slots // BLOCK) * BLOCK
        self.origin = origin - origin % slot_seconds
        self.gpus: list[int] = []
        self.models: list[str] = []
        self.levels: list[dict[str, str]] = []
        self._cells = np.zeros((CELLS_FIRST, COLUMNS), np.int64)
        self._free_cell = self._chain_cells(0)
        self._free_cells = CELLS_FIRST
        self._shared: dict[int, dict[int, int]] = {}
        """For each owner the GPUs on which it has shares, and how many."""
        self._shared_lists: dict[int, NDArray[np.int64]] = {}
        self._denials: dict[tuple[object, ...], Words] = {}
        self._allocate(NODES_FIRST)

    def _allocate(self, nodes: int) -> None:
        """Arrays for that many nodes; every GPU of them is missing until it is added."""
        words, blocks = nodes // 8, self.slots // BLOCK
        depth = max(1, blocks.bit_length())
        self._raw = np.zeros((self.slots, words), np.uint64)
        self._pre = np.zeros_like(self._raw)
        self._suf = np.zeros_like(self._raw)
        self._sparse = np.zeros((depth, blocks, words), np.uint64)
        self._rows = (self._raw, self._pre, self._suf, self._sparse)
        self._heads = np.full(nodes * 8, NIL, np.int64)
        self._missing = np.full(words, ~np.uint64(0))
        self._closed = np.full(words, ~np.uint64(0))
        self._failed = np.zeros(words, np.uint64)
        self._busy = np.zeros(words, np.uint64)
        self._counts = np.zeros(words, np.uint64)
        self._found = np.zeros(nodes, np.int64)

    def _chain_cells(self, first: int) -> int:
        """Chain the cells from `first` on as free ones; the first of them."""
        count = len(self._cells)
        self._cells[first:, NEXT] = np.arange(first + 1, count + 1)
        self._cells[count - 1, NEXT] = NIL
        return first

    def _grow_nodes(self) -> None:
        heads, missing, closed, failed = self._heads, self._missing, self._closed, self._failed
        self._allocate(len(missing) * 8 * 2)
        self._heads[: len(heads)] = heads
        self._missing[: len(missing)] = missing
        self._closed[: len(closed)] = closed
        self._failed[: len(failed)] = failed
        self._rebuild()

    def _rebuild(self) -> None:
        kernels.rebuild(*self._rows, self._heads, self._cells, self.origin, self.slot_seconds)

    def add_node(self, gpus: int, model: str, levels: Iterable[tuple[str, str]]) -> int:
        """Know one more node, closed; its number."""
        node = len(self.gpus)
        if node == len(self._missing) * 8:
            self._grow_nodes()
        self.gpus.append(gpus)
        self.models.append(model)
        self.levels.append(dict(levels))
        self._put_byte(self._missing, node, 0xFF & ~((1 << gpus) - 1))
        self._denials.clear()
        return node

    def drop_node(self) -> None:
        """Forget the node that was added last."""
        node = len(self.gpus) - 1
        self._put_byte(self._missing, node, 0xFF)
        self._put_byte(self._closed, node, 0xFF)
        self._put_byte(self._failed, node, 0)
        del self.gpus[node], self.models[node], self.levels[node]
        self._denials.clear()

    def set_open(self, node: int, *, is_open: bool) -> None:
        """Let a node take new holders, or not."""
        self._put_byte(self._closed, node, 0 if is_open else 0xFF)
        self._denials.clear()

    def set_slot_open(self, node: int, slot: int, *, is_open: bool) -> None:
        """Let a GPU take new holders, or not."""
        bit = np.uint64(1 << ((node & 7) * 8 + slot))
        if is_open:
            self._failed[node >> 3] &= ~bit
        else:
            self._failed[node >> 3] |= bit
        self._denials.clear()

    @staticmethod
    def _put_byte(words: Words, node: int, byte: int) -> None:
        shift = (node & 7) * 8
        words[node >> 3] = (words[node >> 3] & ~np.uint64(0xFF << shift)) | np.uint64(byte << shift)

    def hold(
        self, node: int, first_milli: int, width_milli: int, start: int, end: int, owner: int
    ) -> None:
        """Hold a run of a node over [start, end) for an owner's number."""
        if self._free_cells < GPUS_MAX:
            self._grow_cells()
        self._free_cell, mask = kernels.hold_run(
            self._heads,
            self._cells,
            self._free_cell,
            node,
            first_milli,
            width_milli,
            start,
            end,
            owner,
        )
        self._free_cells -= mask.bit_count()
        if width_milli % WHOLE:
            self._share(node, first_milli, width_milli, owner)
        kernels.mark(*self._rows, node, mask, start, end, self.origin, self.slot_seconds)

    def release(
        self, node: int, first_milli: int, width_milli: int, start: int, end: int, owner: int
    ) -> None:
        """The exact inverse of a hold. Raises LookupError when there is no such hold."""
        self._free_cell, mask = kernels.release_run(
            self._heads,
            self._cells,
            self._free_cell,
            node,
            first_milli,
            width_milli,
            start,
            end,
            owner,
        )
        if not mask:
            raise LookupError(node, first_milli, width_milli, start, end, owner)
        self._free_cells += mask.bit_count()
        if width_milli % WHOLE:
            for slot, width in _slots_of(first_milli, width_milli):
                if width < WHOLE:
                    self._unshare(node * 8 + slot, owner)
        kernels.unmark(
            *self._rows,
            self._heads,
            self._cells,
            node,
            mask,
            start,
            end,
            self.origin,
            self.slot_seconds,
        )

    def _share(self, node: int, first_milli: int, width_milli: int, owner: int) -> None:
        """Note on which GPUs an owner has shares, to look there first for another one."""
        gpus = self._shared.setdefault(owner, {})
        for slot, width in _slots_of(first_milli, width_milli):
            if width < WHOLE:
                gpu = node * 8 + slot
                if gpu not in gpus:
                    self._shared_lists.pop(owner, None)
                gpus[gpu] = gpus.get(gpu, 0) + 1

    def _unshare(self, gpu: int, owner: int) -> None:
        gpus = self._shared[owner]
        left = gpus[gpu] - 1
        if left:
            gpus[gpu] = left
        else:
            del gpus[gpu]
            self._shared_lists.pop(owner, None)

    def _grow_cells(self) -> None:
        """Twice as many cells; the fresh ones go in front of those that are left."""
        count, left = len(self._cells), self._free_cell
        self._cells = np.vstack((self._cells, np.zeros_like(self._cells)))
        self._free_cell = self._chain_cells(count)
        self._cells[len(self._cells) - 1, NEXT] = left
        self._free_cells += count

    def advance(self, now: int) -> None:
        """Move the origin on when half the horizon has passed."""
        if now - self.origin > self.slots * self.slot_seconds // 2:
            self.origin = now - now % self.slot_seconds
            self._rebuild()

    def denied(
        self,
        models: tuple[str, ...],
        among: Sequence[int] | None,
        without: Sequence[int],
        node_gpus: int | None = None,
    ) -> Words:
        """The GPUs that a question rules out. With `node_gpus`, nodes of another size are."""
        key = (models, node_gpus)
        base = self._denials.get(key)
        if base is None:
            base = self._denials[key] = self._deny(models, node_gpus)
        if among is None and not without:
            return base
        mask = base.copy()
        if among is not None:
            chosen = np.full_like(mask, ~np.uint64(0))
            for node in among:
                self._put_byte(chosen, node, 0)
            mask |= chosen
        for node in without:
            self._put_byte(mask, node, 0xFF)
        return mask

    def _deny(self, models: tuple[str, ...], node_gpus: int | None) -> Words:
        mask = self._closed | self._failed
        if node_gpus is None:
            mask |= self._missing
        for node, (gpus, model) in enumerate(zip(self.gpus, self.models, strict=True)):
            wrong_size = node_gpus is not None and gpus != node_gpus
            if wrong_size or (models and model not in models):
                self._put_byte(mask, node, 0xFF)
        return mask

    def find_gpus(self, count: int, start: int, end: int, denied: Words) -> tuple[int, int] | None:
        """One node and a mask of its GPUs, the fewest free that suffice; None is a proof."""
        node, mask = kernels.find_gpus(
            *self._rows,
            self._heads,
            self._cells,
            denied,
            start,
            end,
            count,
            self.origin,
            self.slot_seconds,
            self._busy,
            self._counts,
        )
        return None if node < 0 else (node, mask)

    def find_nodes(
        self, count: int, start: int, end: int, denied: Words, level: str | None
    ) -> tuple[int, ...] | None:
        """Whole nodes, the lowest, or those of the fullest group that has enough."""
        wanted = len(self._found) if level else count
        found = kernels.find_nodes(
            *self._rows,
            self._heads,
            self._cells,
            denied,
            start,
            end,
            wanted,
            self.origin,
            self.slot_seconds,
            self._busy,
            self._counts,
            self._found,
        )
        nodes = self._found[:found].tolist()
        if level is None:
            return tuple(nodes) if found == count else None
        return self._one_group(nodes, count, level)

    def _one_group(self, nodes: list[int], count: int, level: str) -> tuple[int, ...] | None:
        groups: dict[str, list[int]] = {}
        for node in nodes:
            group = self.levels[node].get(level)
            if group is not None:
                groups.setdefault(group, []).append(node)
        fitting = [
            (len(members), min(members)) for members in groups.values() if len(members) >= count
        ]
        if not fitting:
            return None
        _, lowest = min(fitting)
        members = groups[self.levels[lowest][level]]
        return tuple(sorted(members)[:count])

    def find_share(
        self, width_milli: int, start: int, end: int, owner: int, denied: Words
    ) -> tuple[int, int] | None:
        """A GPU and its node with that much free at each instant, shared with no one else.

        The owner's own GPUs are looked at first; any other GPU that would do holds nothing at
        all over the span, and is found as a free one.
        """
        own = self._shared_lists.get(owner)
        if own is None:
            gpus = self._shared.get(owner, {})
            own = self._shared_lists[owner] = np.array(sorted(gpus), np.int64)
        gpu = kernels.find_share(
            self._heads, self._cells, own, len(own), denied, start, end, owner, width_milli
        )
        if gpu >= 0:
            return gpu // 8, gpu % 8
        found = self.find_gpus(1, start, end, denied)
        if found is None:
            return None
        return found[0], found[1].bit_length() - 1

    def tightest(self, start: int, end: int, denied: Words) -> tuple[int, int]:
        """A second of [start, end) at which the fewest GPUs are free, and how many they are."""
        a, b = kernels.outward(start, end, self.origin, self.slot_seconds, self.slots)
        slot = kernels.busiest_slot(self._raw, denied, a, b)
        low = max(start, self.origin + slot * self.slot_seconds)
        high = min(end, self.origin + (slot + 1) * self.slot_seconds)
        instants = [low, *self._edges(START, low, high, TIGHT_INSTANTS_MAX)]
        counted = ((kernels.free_at(self._heads, self._cells, denied, at), at) for at in instants)
        free, at = min(counted)
        return at, free

    def ends(self, after: int, before: int) -> list[int]:
        """The instants in (after, before) at which something is given up, earliest first."""
        return self._edges(END, after, before, EARLIEST_TRIED_MAX)

    def _edges(self, column: int, after: int, before: int, most: int) -> list[int]:
        out = np.zeros(len(self._cells), np.int64)
        found = kernels.edges(self._heads, self._cells, column, after, before, out)
        return [int(edge) for edge in np.unique(out[:found])[:most]]


def _slots_of(first_milli: int, width_milli: int) -> Iterable[tuple[int, int]]:
    """The GPUs of a run, each with how much of it is meant."""
    end = first_milli + width_milli
    for slot in range(first_milli // WHOLE, (end + WHOLE - 1) // WHOLE):
        yield slot, min(end, (slot + 1) * WHOLE) - max(first_milli, slot * WHOLE)


def warm_up() -> None:
    """Compile every kernel, or load it from numba's cache; the first time takes seconds."""
    index = PlacementIndex(0, horizon_slots=4 * BLOCK)
    index.add_node(8, "warm", ())
    index.set_open(0, is_open=True)
    denied = index.denied((), None, ())
    index.find_gpus(1, 0, 10, denied)
    index.find_nodes(1, 0, 10, denied, None)
    index.hold(0, 0, 500, 0, 10, 0)
    index.find_share(100, 0, 10, 0, denied)
    index.tightest(0, 10, denied)
    index.ends(0, 100)
    index.release(0, 0, 500, 0, 10, 0)
    index._rebuild()  # noqa: SLF001 - our own

"""A journal in memory, with everything that the real one checks, and places to fail at."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from domain.journal import (
    Batch,
    Cell,
    CellsOverlap,
    Claim,
    Fenced,
    Head,
    JournalUnavailable,
    Snapshot,
    StoredEvent,
    Tile,
)
from domain.timespan import Instant

SNAPSHOTS_KEPT_MAX = 3


class MemoryStore:
    """What outlives a writer: events, claims, cells, tiles, snapshots."""

    def __init__(self, shard: int = 0) -> None:
        """Begin with an empty log."""
        self.head = Head(shard, 0, 0, Instant(0), b"")
        self.holder: str | None = None
        self.events: list[StoredEvent] = []
        self.claims: dict[tuple[str, str], Claim] = {}
        self.cells: dict[int, list[Cell]] = {}
        self.tiles: dict[tuple[int, int], Tile] = {}
        self.snapshots: list[tuple[bytes, Snapshot]] = []


def _nothing(_: str) -> None:
    """No failure."""


class MemoryJournal:
    """The journal of one shard, as one writer sees it.

    `failpoint` is called with `before_append` and `after_append`; what it raises happens there,
    as if the machine had stopped.
    """

    def __init__(self, store: MemoryStore, failpoint: Callable[[str], None] = _nothing) -> None:
        """A writer over what is stored."""
        self._store = store
        self._epoch = -1
        self._failpoint = failpoint

    def take_lease(self, holder: str) -> Head:
        """Become the writer under a new epoch; the former one is fenced at once."""
        self._epoch = self._store.head.epoch + 1
        self._store.head = replace(self._store.head, epoch=self._epoch)
        self._store.holder = holder
        return self._store.head

    def renew_lease(self) -> None:
        """Stay the writer. Raises `Fenced` when another one came."""
        if self._store.head.epoch != self._epoch:
            raise Fenced(f"epoch {self._epoch} is over")

    def release_lease(self) -> None:
        """Let the next writer in."""
        self._store.holder = None

    def claims(self, keys: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], Claim]:
        """Those of the keys that were used before."""
        known = self._store.claims
        return {key: known[key] for key in keys if key in known}

    def append(self, batch: Batch) -> None:
        """Write a batch, all of it or nothing."""
        self._failpoint("before_append")
        store = self._store
        if store.head != batch.previous or batch.previous.epoch != self._epoch:
            raise Fenced(f"the head is {store.head.seq}, not {batch.previous.seq}")
        self._check(batch)
        cells = self._cells_after(batch)
        store.events += batch.events
        store.claims.update({(c.scope, c.key): c for c in batch.claims})
        store.cells.update(cells)
        store.tiles.update({(t.level, t.index): t for t in batch.tiles})
        store.head = batch.head
        self._failpoint("after_append")

    def _check(self, batch: Batch) -> None:
        """No gap, no claim twice, time goes on: what the real one's keys and checks hold."""
        seq, at = batch.previous.seq, batch.previous.recorded_at
        for event in batch.events:
            assert event.seq == seq + 1, "the log has no gap"
            assert event.recorded_at > at, "recorded time goes on"
            seq, at = event.seq, event.recorded_at
        assert batch.head.seq == seq
        twice = self._store.claims.keys() & {(c.scope, c.key) for c in batch.claims}
        assert not twice, "a key is claimed once"

    def _cells_after(self, batch: Batch) -> dict[int, list[Cell]]:
        """The cells of the nodes that a batch touches. Raises `CellsOverlap`."""
        touched: dict[int, list[Cell]] = {}
        for cell in (*batch.cells_removed, *batch.cells_added):
            place = cell.first_milli // 8000
            touched.setdefault(place, list(self._store.cells.get(place, ())))
        for cell in batch.cells_removed:
            cells = touched[cell.first_milli // 8000]
            assert cell in cells, "a cell is removed as it was added"
            cells.remove(cell)
        for cell in batch.cells_added:
            cells = touched[cell.first_milli // 8000]
            for other in cells:
                apart = (
                    cell.end_milli <= other.first_milli
                    or other.end_milli <= cell.first_milli
                    or cell.end <= other.start
                    or other.end <= cell.start
                )
                if not apart:
                    raise CellsOverlap(f"{cell} overlaps {other}")
            cells.append(cell)
        return touched

    def resolve(self, batch: Batch) -> bool:
        """Whether a batch is here."""
        return self._store.head.seq >= batch.head.seq and self._store.head.epoch == self._epoch

    def read(self, after: int, limit: int) -> Sequence[StoredEvent]:
        """Events behind a position, at most `limit`."""
        first = bisect_left(self._store.events, after + 1, key=lambda event: event.seq)
        return self._store.events[first : first + limit]

    def read_all(self, after: int) -> Iterator[StoredEvent]:
        """Events behind a position, up to the present head."""
        yield from self.read(after, len(self._store.events))

    def newest_snapshot(self, fingerprint: bytes) -> Snapshot | None:
        """The newest snapshot of a format."""
        found = [snapshot for known, snapshot in self._store.snapshots if known == fingerprint]
        return found[-1] if found else None

    def save_snapshot(self, snapshot: Snapshot, fingerprint: bytes) -> None:
        """Keep a snapshot, and forget all but the newest few."""
        if snapshot.seq > self._store.head.seq:
            raise JournalUnavailable("a snapshot is never ahead of the log")
        self._store.snapshots.append((fingerprint, snapshot))
        self._store.snapshots.sort(key=lambda kept: kept[1].seq)
        del self._store.snapshots[:-SNAPSHOTS_KEPT_MAX]

"""Verifying a journal: every byte of it against its leaf, its tree, its columns and its fold."""

from collections.abc import Iterator

from connectors.postgres.journal import JournalReader
from domain.cells import cell_steps
from domain.journal import Cell, StoredEvent
from domain.ledger import Ledger
from domain.merkle import Tree
from domain.verdict import KnownRoot, Verdict
from schemas.codec import Malformed
from schemas.envelope import Envelope, decode_envelope, leaf_of
from schemas.image import IMAGE_FORMAT, hash_of, image_of
from schemas.ordering import folded
from schemas.registry import Registry

EVENTS_READ = 2_000


def verify_log(reader: JournalReader, registry: Registry, known: KnownRoot | None) -> Verdict:
    """Everything that can be made anew from the events, made anew and compared.

    `known` is a root that the caller kept. Raises `JournalUnavailable`.
    """
    return _Verification(reader, registry, known).run()


class _Verification:
    def __init__(self, reader: JournalReader, registry: Registry, known: KnownRoot | None) -> None:
        self._reader = reader
        self._registry = registry
        self._known = known
        self._verdict = Verdict()
        self._ledger: Ledger | None = Ledger(shard=reader.shard)
        self._cells: dict[Cell, int] = {}
        self._snapshot = reader.newest_snapshot(IMAGE_FORMAT)

    def run(self) -> Verdict:
        verdict = self._verdict
        tree = self._walk()
        verdict.events, verdict.root = tree.size, tree.root.hex()
        verdict.checked.append(f"leaves of {tree.size} events made anew from their bytes")
        verdict.checked.append("positions and times without a gap, columns as the envelopes say")
        self._against_head(tree)
        if self._ledger is not None:
            self._against_cells()
        if self._known is None:
            verdict.not_excluded.append(
                "that the tail was cut, or all of it written anew with its tree: give a root that "
                "you kept with --known SIZE:ROOT, or compare with the topic by --from kafka"
            )
        elif self._known.size > tree.size:
            verdict.fault(f"the log ends at {tree.size}, your root is of {self._known.size} events")
        return verdict

    def _events(self) -> Iterator[StoredEvent]:
        """All events in order, whether or not their positions are what they should be."""
        after = 0
        while chunk := self._reader.read(after, EVENTS_READ):
            yield from chunk
            after = chunk[-1].seq

    def _walk(self) -> Tree:
        tree, seq, recorded_at = Tree(), 0, -1
        tiles: list[tuple[int, int, bytes]] = []
        for event in self._events():
            if event.seq != seq + 1:
                self._verdict.fault(f"event {seq + 1} is missing")
                self._ledger = None
            seq = event.seq
            leaf = leaf_of(event.envelope, event.body)
            if leaf != event.leaf:
                self._verdict.fault(f"event {event.seq} was changed: its bytes have another leaf")
            said = self._said(event, recorded_at)
            tree, full = tree.grown([leaf])
            tiles += [(tile.level, tile.index, tile.hashes) for tile in full]
            recorded_at = event.recorded_at
            self._against_known(tree)
            self._fold(event, said)
        self._against_tiles(tiles)
        return tree

    def _said(self, event: StoredEvent, before: int) -> Envelope | None:
        """What the envelope says; what contradicts it is a fault, and bytes that are none, too."""
        fault = self._verdict.fault
        try:
            envelope = decode_envelope(event.envelope)
        except Malformed as error:
            fault(f"event {event.seq}: {error}")
            return None
        said = (envelope.seq, envelope.type, envelope.stream, envelope.stream_version)
        if said != (event.seq, event.type, event.stream, event.stream_version):
            fault(f"event {event.seq} is not in its place: its envelope says {said}")
        if envelope.recorded_at != event.recorded_at or event.recorded_at <= before:
            fault(f"event {event.seq}: recorded time does not go on")
        return envelope

    def _fold(self, event: StoredEvent, said: Envelope | None) -> None:
        """The state goes on as long as the facts are what they were."""
        if self._ledger is None or said is None:
            self._ledger = None
            return
        fault = folded(self._ledger, self._registry, said, event.body)
        if fault:
            self._verdict.fault(fault)
            self._ledger = None
            return
        for cell, step in cell_steps(self._ledger.changes):
            self._cells[cell] = self._cells.get(cell, 0) + step
        self._ledger.changes.clear()
        if self._snapshot is not None and self._snapshot.seq == event.seq:
            equal = hash_of(image_of(self._ledger)) == self._snapshot.state_hash
            if not equal:
                self._verdict.fault(f"the snapshot at {event.seq} is not the state of the log")
            self._verdict.checked.append(f"the snapshot at {event.seq} against a replay")

    def _against_known(self, tree: Tree) -> None:
        known = self._known
        if known is None or known.size != tree.size:
            return
        if known.root == tree.root:
            self._verdict.checked.append(f"the root of the first {known.size} events is yours")
        else:
            self._verdict.fault(f"the first {known.size} events have another root than yours")

    def _against_head(self, tree: Tree) -> None:
        head = self._reader.head()
        if head is None:
            return
        if head.seq != tree.size:
            self._verdict.fault(f"the head says {head.seq} events, there are {tree.size}")
        elif Tree.from_bytes(head.tree).root != tree.root:
            self._verdict.fault(f"the head at {head.seq} has another root")
        else:
            self._verdict.checked.append("the root of the head")

    def _against_tiles(self, made: list[tuple[int, int, bytes]]) -> None:
        stored = {(r["level"], r["index"]): bytes(r["hashes"]) for r in self._reader.tiles()}
        for level, index, hashes in made:
            if stored.pop((level, index), None) != hashes:
                self._verdict.fault(f"tile {index} of level {level} is another one or missing")
        for level, index in stored:
            self._verdict.fault(f"tile {index} of level {level} is one too many")
        self._verdict.checked.append(f"{len(made)} tiles of the tree")

    def _against_cells(self) -> None:
        """The exclusion cells are what the facts say, no more and no less."""
        wanted = {cell for cell, count in self._cells.items() if count > 0}
        missing, extra = self._reader.cells_differ(wanted)
        if missing or extra:
            self._verdict.fault(f"exclusion cells: {missing} are missing, {extra} are too many")
        self._verdict.checked.append(f"{len(wanted)} exclusion cells")

"""The follower: folds the log into read models, a batch per transaction, and keeps snapshots."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import psycopg
import structlog

from connectors.postgres.journal import CHANNEL, JournalReader, connect
from connectors.postgres.read_models import PUBLIC, CheckpointMoved, ReadModelStore
from connectors.postgres.recorded import recorded
from domain.evolve import evolve
from domain.facts.shard import SubjectErased
from domain.ids import PrincipalId
from domain.journal import Snapshot, StoredEvent
from domain.ledger import Ledger
from domain.record import Recorded
from projections.projection import Projection, state_hash
from schemas.image import IMAGE_FORMAT, hash_of, image_of, ledger_from, pack, unpack
from schemas.registry import Registry

ForgetSubject = Callable[[psycopg.Connection[Any], PrincipalId, int], None]
"""Drops what is known of a subject until a position; doing it twice is once."""

BATCH_EVENTS_MAX = 1_000
SNAPSHOT_EVENTS = 50_000
POLL_SECONDS = 1.0

_log = structlog.get_logger("follower")


@dataclass(slots=True)
class Following:
    """One projection on its way: where it is, and whether something stopped it."""

    store: ReadModelStore
    seq: int
    hash: bytes
    poison: str = ""


class EventLog(Protocol):
    """A shard's events in order, from the journal or from its public copy."""

    def read(self, after: int, limit: int) -> Sequence[StoredEvent]:
        """Events behind a position."""
        ...

    def read_all(self, after: int) -> Iterator[StoredEvent]:
        """Events behind a position up to the present end."""
        ...


class Follower:
    """Runs projections over a shard's log into its own database."""

    def __init__(
        self,
        dsn: str,
        registry: Registry,
        projections: Sequence[Projection],
        *,
        schema: str = PUBLIC,
        snapshots: bool = True,
        forget_subject: ForgetSubject | None = None,
        log: EventLog | None = None,
    ) -> None:
        """Fold what was projected before, without writing it again.

        The events come from the journal in that database, unless another log of the shard is given.
        """
        self._forget_subject = forget_subject
        self._registry = registry
        self._reader = JournalReader(dsn)
        self._log: EventLog = log or self._reader
        self._connection = connect(dsn)
        self._listener = psycopg.connect(dsn, autocommit=True)
        self._listener.execute(f"LISTEN {CHANNEL}".encode())
        self._snapshots = _SnapshotFold(self._reader) if snapshots else None
        self.following = [self._resume(p, schema) for p in projections]

    def _resume(self, projection: Projection, schema: str) -> Following:
        """A projection folded up to its checkpoint; its hash must be the one that is stored."""
        row = self._connection.execute(
            "SELECT version, seq, hash FROM projection WHERE name = %s", (projection.name,)
        ).fetchone()
        store = ReadModelStore(projection, schema)
        if row is None:
            self._connection.execute(
                "INSERT INTO projection (name, version, seq, hash) VALUES (%s, %s, 0, %s)",
                (projection.name, projection.version, state_hash(projection)),
            )
            return Following(store, 0, state_hash(projection))
        following = Following(store, row["seq"], bytes(row["hash"]))
        if row["version"] != projection.version:
            following.poison = f"version {row['version']} is stored; rebuild it"
            return following
        for batch in _batches(self._log.read_all(0), row["seq"]):
            for event in batch:
                projection.apply(recorded(event, self._registry))
            projection.settle()
            for table in projection.tables:
                table.drain()
        if row["seq"] and state_hash(projection) != row["hash"]:
            following.poison = "the stored rows are not what the log says; rebuild it"
            _log.error("projection_hash_differs", projection=projection.name)
        return following

    @property
    def seq(self) -> int:
        """How far all that goes on has come: the snapshot's ledger may be behind every projection."""
        places = [f.seq for f in self.following if not f.poison]
        if self._snapshots is not None:
            places.append(self._snapshots.seq)
        return min(places, default=0)

    def step(self) -> int:
        """Fold the next batch into every projection; how many events it had."""
        if self._snapshots is None and all(f.poison for f in self.following):
            return 0
        after = self.seq
        events = self._log.read(after, BATCH_EVENTS_MAX)
        if not events:
            return 0
        batch = [recorded(event, self._registry) for event in events]
        self._forget(batch)
        for following in self.following:
            if not following.poison:
                self._project(following, batch)
        if self._snapshots is not None:
            self._snapshots.fold(batch)
        return len(events)

    def _forget(self, batch: Iterable[Recorded]) -> None:
        """Names and keys of erased subjects go before any checkpoint says that they went."""
        for entry in batch:
            if self._forget_subject is not None and isinstance(entry.fact, SubjectErased):
                self._forget_subject(self._connection, entry.fact.subject_id, entry.seq)

    def _project(self, following: Following, batch: Iterable[Recorded]) -> None:
        """One projection's rows, checkpoint and hash in one transaction; poison stops it alone."""
        projection = following.store.projection
        fresh = [entry for entry in batch if entry.seq > following.seq]
        if not fresh:
            return
        try:
            for entry in fresh:
                projection.apply(entry)
            projection.settle()
        except Exception as error:  # noqa: BLE001 - poison stops this projection, loudly
            self._poison(following, error)
            return
        changes = {table.name: table.drain() for table in projection.tables}
        try:
            with self._connection.transaction():
                following.store.write(self._connection, changes)
                following.store.checkpoint(
                    self._connection, following.seq, fresh[-1].seq, following.hash
                )
        except (psycopg.DataError, UnicodeError) as error:
            self._poison(following, error)
            return
        following.seq, following.hash = fresh[-1].seq, state_hash(projection)

    def _poison(self, following: Following, error: Exception) -> None:
        name = following.store.projection.name
        _log.exception("projection_poisoned", projection=name)
        following.poison = f"{type(error).__name__}: {error}"
        self._connection.execute(
            "UPDATE projection SET poison = %s WHERE name = %s", (following.poison, name)
        )

    def run(self, stopped: Callable[[], bool]) -> None:
        """Follow the log until told to stop; a wake-up call or a second's patience between.

        Raises `CheckpointMoved` when a projection was rebuilt: another start goes on from there.
        """
        while not stopped():
            if self.step() == 0:
                self._must_be_ours()
                for _ in self._listener.notifies(timeout=POLL_SECONDS, stop_after=1):
                    pass

    def _must_be_ours(self) -> None:
        rows = self._connection.execute("SELECT name, seq, hash FROM projection").fetchall()
        stored = {row["name"]: (row["seq"], bytes(row["hash"])) for row in rows}
        for following in self.following:
            name = following.store.projection.name
            if stored.get(name) != (following.seq, following.hash):
                raise CheckpointMoved(f"{name} was rebuilt")

    def catch_up(self, seq: int) -> None:
        """Fold up to a position that the log has reached."""
        while self.seq < seq and self.step():
            pass

    def close(self) -> None:
        """Let go of every connection."""
        self._reader.close()
        self._connection.close()
        self._listener.close()


class _SnapshotFold:
    """A ledger that follows the log, to keep snapshots of."""

    def __init__(self, reader: JournalReader) -> None:
        """Go on from the newest snapshot, or from nothing."""
        self._reader = reader
        snapshot = reader.newest_snapshot(IMAGE_FORMAT)
        self._ledger, self.seq = Ledger(shard=reader.shard), 0
        if snapshot is not None:
            self._ledger, self.seq = ledger_from(unpack(snapshot.state)), snapshot.seq
        self._kept = self.seq

    def fold(self, batch: Iterable[Recorded]) -> None:
        """Evolve, and keep a snapshot every so many events."""
        for entry in batch:
            if entry.seq <= self.seq:
                continue
            assert entry.seq == self.seq + 1, "a snapshot's log has no gap"
            evolve(self._ledger, entry.fact, entry.occurred_at)
            self._ledger.undo.forget()
            self._ledger.changes.clear()
            self.seq = entry.seq
        if self.seq - self._kept >= SNAPSHOT_EVENTS:
            self.keep()

    def keep(self) -> None:
        """Keep a snapshot of what is folded."""
        image = image_of(self._ledger)
        snapshot = Snapshot(self.seq, pack(image), hash_of(image))
        self._reader.save_snapshot(snapshot, IMAGE_FORMAT)
        self._kept = self.seq
        _log.info("snapshot_kept", seq=self.seq, bytes=len(snapshot.state))


def _batches(events: Iterable[StoredEvent], until: int) -> Iterable[list[StoredEvent]]:
    """Events up to a position, as they were batched or nearly so."""
    batch: list[StoredEvent] = []
    for event in events:
        if event.seq > until:
            break
        batch.append(event)
        if len(batch) == BATCH_EVENTS_MAX:
            yield batch
            batch = []
    if batch:
        yield batch

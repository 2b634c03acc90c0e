"""The journal as recorders of the eventsourcing library: its read side, and tracking.

The only module that imports the library, which patches `dataclasses` process-wide when it is
imported; so nothing on the write path imports this one. Topics are names of contracts, such as
`NodeJoined.v1`, never Python paths; originators are streams.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any
from uuid import UUID

import psycopg
from eventsourcing.persistence import (
    ApplicationRecorder,
    IntegrityError,
    Mapper,
    MapperDeserialisationError,
    Notification,
    OperationalError,
    ProgrammingError,
    StoredEvent,
    Subscription,
    Tracking,
    TrackingRecorder,
)

from connectors.postgres.journal import CHANNEL, PostgresJournal, connect
from domain import journal as port
from domain.ids import derive
from domain.merkle import Tree
from domain.timespan import Instant
from schemas.codec import Malformed
from schemas.envelope import Envelope, encode_envelope, leaf_of
from schemas.queries import queries
from schemas.registry import Registry, UnknownSchema

NUMBER_MAX = 2**63 - 1
SELECT_EVENTS_MAX = 5_000
POLL_SECONDS = 1.0
"""A subscription looks again after so long, for a wake-up call can be lost."""
SCRATCH = "scratch"
"""Schemas that raw records may be written to have names that begin so."""

_NO_ID = bytes(16)
_NO_SCHEMA = bytes(8)


class JournalRecorder(ApplicationRecorder, TrackingRecorder):  # type: ignore[misc]
    """Reads a shard's log, and keeps the places of those who follow it; writes no event."""

    def __init__(self, dsn: str, shard: int = 0) -> None:
        """Connect when it is first asked."""
        self._dsn = dsn
        self.shard = shard
        self._sql = queries("recorder.sql")
        self._lock = Lock()
        self._connection: psycopg.Connection[dict[str, Any]] | None = None

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _rows(self, name: str, **values: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - SQL values
        """The rows of a named query. Raises the library's `OperationalError`."""
        with self._lock:
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = connect(self._dsn)
                sql = self._sql[name].encode()
                return self._connection.execute(sql, {"shard": self.shard, **values}).fetchall()
            except (psycopg.Error, port.JournalUnavailable) as error:
                if self._connection is not None:
                    self._connection.close()
                raise OperationalError(str(error).strip()) from error

    def insert_events(
        self,
        stored_events: Sequence[StoredEvent],  # noqa: ARG002 - the library's signature
        **kwargs: object,  # noqa: ARG002 - as above
    ) -> Sequence[int] | None:
        """Refused: facts are decided by the sequencer. Raises `ProgrammingError`."""
        raise ProgrammingError("events are written by the sequencer alone")

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Events of a stream with versions in (gt, lte], as the library wants them."""
        rows = self._rows(
            "select_stream_down" if desc else "select_stream_up",
            stream=str(originator_id),
            gt=-1 if gt is None else gt,
            lte=NUMBER_MAX if lte is None else lte,
            limit=limit,
        )
        return [
            StoredEvent(row["stream"], row["stream_version"], row["type"], bytes(row["body"]))
            for row in rows
        ]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Events of the log from a position on, at most `limit` and `SELECT_EVENTS_MAX`."""
        first = 1 if start is None else start + (not inclusive_of_start)
        rows = self._rows(
            "select_notifications",
            first=first,
            last=NUMBER_MAX if stop is None else stop,
            types=list(topics),
            limit=min(limit, SELECT_EVENTS_MAX),
        )
        return [
            Notification(
                row["stream"], row["stream_version"], row["type"], bytes(row["body"]), row["seq"]
            )
            for row in rows
        ]

    def max_notification_id(self) -> int | None:
        """The log's last position; None when it is empty."""
        rows = self._rows("max_notification")
        return rows[0]["seq"] if rows else None

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> "JournalSubscription":
        """Every event behind a position, and then each new one as it is committed."""
        return JournalSubscription(self, gt=gt, topics=topics)

    def listen(self) -> psycopg.Connection[dict[str, Any]]:
        """A connection of its own that hears of commits. Raises `OperationalError`."""
        try:
            connection = connect(self._dsn)
            connection.execute(f"LISTEN {CHANNEL}".encode())
        except (psycopg.Error, port.JournalUnavailable) as error:
            raise OperationalError(str(error).strip()) from error
        return connection

    def insert_tracking(self, tracking: Tracking) -> None:
        """Move a reader's place on. Raises `IntegrityError` when it is there or beyond."""
        rows = self._rows(
            "insert_tracking",
            application=tracking.application_name,
            notification_id=tracking.notification_id,
        )
        if not rows:
            raise IntegrityError(f"{tracking.application_name} is at that place or beyond")

    def max_tracking_id(self, application_name: str) -> int | None:
        """How far a reader has come."""
        rows = self._rows("max_tracking", application=application_name)
        return rows[0]["notification_id"] if rows else None


class JournalSubscription(Subscription[JournalRecorder]):  # type: ignore[misc]
    """Follows the log by wake-up calls, and looks by itself each second besides."""

    def __init__(
        self, recorder: JournalRecorder, gt: int | None = None, topics: Sequence[str] = ()
    ) -> None:
        """Listen first and read then, so that nothing falls between."""
        super().__init__(recorder=recorder, gt=gt, topics=topics)
        self._listener = recorder.listen()
        self._waiting: list[Notification] = []
        self._after = gt or 0

    def __next__(self) -> Notification:
        """The next event, once there is one; the end, once `stop` was called."""
        while not self._has_been_stopped:
            if not self._waiting:
                self._waiting = self._pull()
            if self._waiting:
                notification = self._waiting.pop()
                self._after = notification.id
                return notification
            for _ in self._listener.notifies(timeout=POLL_SECONDS, stop_after=1):
                pass
        self._listener.close()
        raise StopIteration

    def _pull(self) -> list[Notification]:
        """The next few events, the first of them last."""
        found = self._recorder.select_notifications(
            self._after, SELECT_EVENTS_MAX, topics=self._topics, inclusive_of_start=False
        )
        return list(reversed(found))

    def __exit__(self, *args: object, **kwargs: object) -> None:
        """Stop, and let go of the connection."""
        super().__exit__(*args, **kwargs)
        self._listener.close()


class ScratchRecorder(JournalRecorder):
    """A recorder that does write raw records, through the journal's own append.

    It holds the lease and moves the head as the sequencer does, but nothing has decided what it
    writes: so it opens scratch schemas only, for the library's conformance suites.
    """

    def __init__(self, dsn: str, shard: int = 0) -> None:
        """Take the lease. Raises `ProgrammingError` where the schema is no scratch schema."""
        super().__init__(dsn, shard)
        name = self._rows("present_schema")[0]["name"]
        if not (name or "").startswith(SCRATCH):
            super().close()
            raise ProgrammingError(f"{name} is no scratch schema: raw records are refused")
        self._journal = PostgresJournal(dsn, shard)
        self._writing = Lock()
        self._head = self._journal.take_lease("scratch recorder")

    def close(self) -> None:
        """Give the lease back."""
        self._journal.release_lease()
        self._journal.close()
        super().close()

    def insert_events(
        self,
        stored_events: Sequence[StoredEvent],
        **kwargs: object,  # noqa: ARG002 - the library's signature
    ) -> Sequence[int] | None:
        """Append raw records in one commit; their positions.

        Raises `IntegrityError` when a version of a stream is taken, `OperationalError` when
        nothing was written or nobody knows; it is never tried twice.
        """
        if not stored_events:
            return []
        with self._writing:
            self._must_be_new(stored_events)
            batch = self._batch(stored_events)
            try:
                self._journal.append(batch)
            except (port.Fenced, port.JournalUnavailable, port.CommitUnknown) as error:
                raise OperationalError(f"{type(error).__name__}: {error}") from error
            self._head = batch.head
        return [event.seq for event in batch.events]

    def _must_be_new(self, stored_events: Sequence[StoredEvent]) -> None:
        """One writer alone makes this look before the append exact."""
        pairs = {(str(e.originator_id), e.originator_version) for e in stored_events}
        streams, versions = zip(*pairs, strict=True)
        taken = self._rows("known_versions", streams=list(streams), versions=list(versions))
        if taken or len(pairs) < len(stored_events):
            raise IntegrityError("a version of a stream is recorded once")

    def _batch(self, stored_events: Sequence[StoredEvent]) -> port.Batch:
        events = [
            self._sealed(event, self._head.seq + nth, Instant(self._head.recorded_at + nth))
            for nth, event in enumerate(stored_events, 1)
        ]
        tree, tiles = Tree.from_bytes(self._head.tree).grown([event.leaf for event in events])
        head = port.Head(
            self.shard, events[-1].seq, self._head.epoch, events[-1].recorded_at, tree.to_bytes()
        )
        full = [port.Tile(tile.level, tile.index, tile.hashes) for tile in tiles]
        return port.Batch(self._head, head, events, [], [], [], full, [])

    def _sealed(self, event: StoredEvent, seq: int, at: Instant) -> port.StoredEvent:
        """A raw record with an envelope and a leaf; nobody is said to have caused it."""
        stream, version = str(event.originator_id), event.originator_version
        identity = bytes.fromhex(derive(_NO_ID, f"{self.shard}/{seq}"))
        envelope = encode_envelope(
            Envelope(
                shard=self.shard,
                seq=seq,
                event_id=identity,
                type=event.topic,
                schema_fingerprint=_NO_SCHEMA,
                stream=stream,
                stream_version=version,
                recorded_at=at,
                occurred_at=at,
                principal="recorder",
                on_behalf_of="",
                cause="raw",
                command_id=_NO_ID,
                key="",
                fingerprint=b"",
                topic="",
                partition=-1,
                offset=-1,
            )
        )
        leaf = leaf_of(envelope, event.state)
        return port.StoredEvent(seq, event.topic, stream, version, at, envelope, event.state, leaf)


@dataclass(frozen=True, slots=True)
class JournalFact:
    """A fact as the library's applications get it: what happened, and where it stands."""

    originator_id: str
    originator_version: int
    fact: Any


class AvroMapper(Mapper[str]):  # type: ignore[misc]
    """Between facts and stored records by the Avro contracts: topics are names of contracts."""

    def __init__(self, registry: Registry) -> None:
        """No transcoder, no compressor, no cipher: the bytes are the journal's own."""
        self.transcoder = None
        self.compressor = None
        self.cipher = None
        self._registry = registry

    def to_stored_event(self, domain_event: JournalFact) -> StoredEvent:
        """The record of a fact, by the newest contract."""
        contract, body = self._registry.encode(domain_event.fact)
        return StoredEvent(
            domain_event.originator_id, domain_event.originator_version, contract.type, body
        )

    def to_domain_event(self, stored_event: StoredEvent) -> JournalFact:
        """The fact of a record. Raises the library's `MapperDeserialisationError`."""
        try:
            fact = self._registry.decode(stored_event.topic, stored_event.state)
        except (UnknownSchema, Malformed) as error:
            where = f"{stored_event.originator_id} version {stored_event.originator_version}"
            raise MapperDeserialisationError(f"{where}: {error}") from error
        return JournalFact(str(stored_event.originator_id), stored_event.originator_version, fact)

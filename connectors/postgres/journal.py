"""The journal of one shard in PostgreSQL: one transaction per batch, fenced by its head."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from secrets import token_hex
from typing import Any

import psycopg
from psycopg.rows import class_row, dict_row

from connectors.postgres import copying
from domain.journal import (
    Batch,
    Cell,
    CellsOverlap,
    Claim,
    CommitUnknown,
    Fenced,
    Head,
    JournalUnavailable,
    Snapshot,
    StoredEvent,
)
from schemas.queries import queries

LEASE_SECONDS = 6
LEASE_WAIT_SECONDS_MAX = 60
SMALL_BATCH_MAX = 16
"""Up to so many events go as one statement; more by COPY."""
READ_CHUNK = 5_000
SNAPSHOTS_KEPT_MAX = 3
CHANNEL = "gpuledger_journal"
STATEMENT_SECONDS_MAX = 60

_SESSION = (
    "SET synchronous_commit = on; SET plan_cache_mode = auto;"
    f" SET statement_timeout = '{STATEMENT_SECONDS_MAX}s'"
)
_PREPARED = frozenset({"claims"})
"""Asked for every batch, and found by key whatever the table's size: planned once."""
_WRITER = _SESSION + "; SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan"
"""The writer's few statements go by index, whatever statistics there are; so they are planned
once each, which takes a third off a lone command."""


def connect(dsn: str, session: str = _SESSION) -> psycopg.Connection[dict[str, Any]]:
    """A connection whose commits are durable when they return. Raises `JournalUnavailable`."""
    try:
        connection = psycopg.connect(dsn, row_factory=dict_row, connect_timeout=5, autocommit=True)
        connection.execute(session.encode())
    except psycopg.Error as error:
        raise JournalUnavailable(str(error).strip()) from error
    return connection


class JournalReader:
    """Reads a shard's log; holds no lease and writes nothing."""

    def __init__(self, dsn: str, shard: int = 0) -> None:
        """Connect when it is first asked."""
        self._dsn = dsn
        self.shard = shard
        self._connection: psycopg.Connection[dict[str, Any]] | None = None
        self._sql = queries()

    def _open(self) -> psycopg.Connection[dict[str, Any]]:
        if self._connection is None or self._connection.closed or self._connection.broken:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> psycopg.Connection[dict[str, Any]]:
        return connect(self._dsn)

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()

    def _rows(self, name: str, **values: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - SQL values
        """The rows of a named query, in a transaction of its own."""
        try:
            connection = self._open()
            sql = self._sql[name].encode()
            rows = connection.execute(sql, values, prepare=name in _PREPARED).fetchall()
        except psycopg.Error as error:
            self._drop()
            raise JournalUnavailable(str(error).strip()) from error
        return rows

    def _drop(self) -> None:
        """Give up a connection in whatever state it is."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def head(self) -> Head | None:
        """Where the log ends; None before its first writer came."""
        rows = self._rows("head", shard=self.shard)
        return Head(**rows[0]) if rows else None

    def read(self, after: int, limit: int) -> Sequence[StoredEvent]:
        """Events behind a position, at most `limit`."""
        return self._events("read", after=after, limit=limit)

    def read_stream(self, stream: str, limit: int) -> Sequence[StoredEvent]:
        """The first events of a stream."""
        return self._events("read_stream", stream=stream, limit=limit)

    def _events(self, name: str, **values: Any) -> list[StoredEvent]:  # noqa: ANN401 - SQL values
        try:
            connection = self._open()
            with connection.cursor(row_factory=class_row(StoredEvent), binary=True) as cursor:
                sql = self._sql[name].encode()
                rows = cursor.execute(sql, {"shard": self.shard, **values}).fetchall()
        except psycopg.Error as error:
            self._drop()
            raise JournalUnavailable(str(error).strip()) from error
        return rows

    def read_all(self, after: int) -> Iterator[StoredEvent]:
        """Events behind a position up to the present head, a chunk at a time."""
        head = self.head()
        end = head.seq if head else 0
        while after < end:
            chunk = self.read(after, min(READ_CHUNK, end - after))
            assert chunk, "the log has no gap"
            yield from chunk
            after = chunk[-1].seq

    def tiles(self) -> list[dict[str, Any]]:
        """Every full tile of the tree: level, index, hashes."""
        return self._rows("tiles", shard=self.shard)

    def tile(self, level: int, index: int) -> bytes:
        """The hashes of one full tile."""
        (row,) = self._rows("tile", shard=self.shard, level=level, index=index)
        hashes: bytes = row["hashes"]
        return hashes

    def cells_differ(self, wanted: Iterable[Cell]) -> tuple[int, int]:
        """How many of these cells are missing, and how many others are there."""
        cells = "{" + ";".join(map(copying.box, wanted)) + "}"
        (row,) = self._rows("cells_differ", shard=self.shard, cells=cells)
        return row["missing"], row["extra"]

    def newest_snapshot(self, fingerprint: bytes) -> Snapshot | None:
        """The newest snapshot of a format."""
        rows = self._rows("newest_snapshot", shard=self.shard, fingerprint=fingerprint)
        return Snapshot(**rows[0]) if rows else None

    def save_snapshot(self, snapshot: Snapshot, fingerprint: bytes) -> None:
        """Keep a snapshot, and forget all but the newest few."""
        try:
            connection = self._open()
            values = {
                "shard": self.shard,
                "seq": snapshot.seq,
                "state": snapshot.state,
                "state_hash": snapshot.state_hash,
                "fingerprint": fingerprint,
                "kept": SNAPSHOTS_KEPT_MAX,
            }
            with connection.transaction():
                connection.execute(self._sql["save_snapshot"].encode(), values)
                connection.execute(self._sql["forget_snapshots"].encode(), values)
        except psycopg.Error as error:
            self._drop()
            raise JournalUnavailable(str(error).strip()) from error


class PostgresJournal(JournalReader):
    """The journal as its one writer sees it."""

    def __init__(self, dsn: str, shard: int = 0) -> None:
        """A writer to be; it must take the lease first."""
        super().__init__(dsn, shard)
        self._epoch = 0
        self._session_name: str | None = None

    def _connect(self) -> psycopg.Connection[dict[str, Any]]:
        """A new session, once the former one is over for certain.

        A session whose wire broke may still hold the head, or get its last statement late.
        """
        name = f"gpuledger writer {token_hex(8)}"
        connection = connect(self._dsn, f"{_WRITER}; SET application_name = '{name}'")
        if self._session_name is not None:
            try:
                values = {"name": self._session_name}
                ended = connection.execute(self._sql["end_session"].encode(), values).fetchall()
            except psycopg.Error as error:
                connection.close()
                raise JournalUnavailable(str(error).strip()) from error
            if not all(row["ended"] for row in ended):
                connection.close()
                raise JournalUnavailable("the former session does not end")
        self._session_name = name
        return connection

    def raise_epoch_to(self, epoch: int) -> None:
        """Let the next lease be above an epoch that is known from elsewhere.

        Raises `JournalUnavailable`.
        """
        self._rows("raise_lease", shard=self.shard, epoch=epoch)

    def take_lease(self, holder: str) -> Head:
        """Become the writer, waiting for the former one's term to end.

        Raises `JournalUnavailable`, also when another writer keeps the shard for too long, and
        `Fenced` when the relay found that log and topic are a fork.
        """
        until = time.monotonic() + LEASE_WAIT_SECONDS_MAX
        values = {"shard": self.shard, "holder": holder, "seconds": LEASE_SECONDS}
        while not (rows := self._rows("take_lease", **values)):
            left = self._rows("lease_left", shard=self.shard)[0]
            if time.monotonic() > until:
                raise JournalUnavailable(f"shard {self.shard} is held by {left['holder']}")
            time.sleep(min(1.0, max(0.05, left["seconds"])))
        self._epoch = rows[0]["epoch"]
        heads = self._rows("raise_epoch", shard=self.shard, epoch=self._epoch)
        if not heads:
            raise JournalUnavailable(f"the lease of epoch {self._epoch} was lost again")
        self.renew_lease()
        return Head(**heads[0])

    def renew_lease(self) -> None:
        """Stay the writer. Raises `Fenced`, `JournalUnavailable`."""
        values = {"shard": self.shard, "epoch": self._epoch, "seconds": LEASE_SECONDS}
        rows = self._rows("renew_lease", **values)
        if not rows:
            raise Fenced(f"epoch {self._epoch} of shard {self.shard} is over")
        if rows[0]["fork"]:
            raise Fenced(f"shard {self.shard}: {rows[0]['fork']}")

    def release_lease(self) -> None:
        """Let the next writer in without a wait."""
        try:
            connection = self._open()
            sql = self._sql["release_lease"].encode()
            connection.execute(sql, {"shard": self.shard, "epoch": self._epoch})
        except psycopg.Error as error:
            self._drop()
            raise JournalUnavailable(str(error).strip()) from error

    def claims(self, keys: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], Claim]:
        """Those of the keys that were used before."""
        rows = self._rows(
            "claims",
            shard=self.shard,
            scopes=[scope for scope, _ in keys],
            keys=[key for _, key in keys],
        )
        return {(row["scope"], row["key"]): Claim(**row) for row in rows}

    def append(self, batch: Batch) -> None:
        """Write a batch in one transaction.

        Raises `Fenced`, `CellsOverlap`, `JournalUnavailable` or `CommitUnknown`.
        """
        is_small = len(batch.events) <= SMALL_BATCH_MAX
        plain = not (batch.cells_removed or batch.tiles or batch.ingress)
        connection = self._open()
        committing = is_small and plain
        try:
            if is_small and plain:
                self._append_small(connection, batch)
                return
            connection.execute(b"BEGIN")
            self._append_large(connection, batch)
            self._append_rest(connection, batch)
            connection.execute(f"NOTIFY {CHANNEL}".encode())
            committing = True
            connection.execute(b"COMMIT")
        except psycopg.errors.ExclusionViolation as error:
            self._roll_back(connection)
            raise CellsOverlap(str(error).strip()) from error
        except psycopg.errors.UniqueViolation as error:
            self._drop()
            raise AssertionError(f"written twice: {error}") from error
        except psycopg.Error as error:
            lost = connection.broken or connection.closed
            self._drop()
            if committing and lost:
                raise CommitUnknown(str(error).strip()) from error
            raise JournalUnavailable(str(error).strip()) from error
        except Fenced:
            self._roll_back(connection)
            raise
        except BaseException:
            self._drop()
            raise

    def _roll_back(self, connection: psycopg.Connection[dict[str, Any]]) -> None:
        """End a transaction that failed, if one is open."""
        if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            connection.execute(b"ROLLBACK")

    def _head_values(self, batch: Batch) -> dict[str, Any]:
        return {
            "shard": self.shard,
            "epoch": self._epoch,
            "previous_seq": batch.previous.seq,
            "seq": batch.head.seq,
            "recorded_at": batch.head.recorded_at,
            "tree": batch.head.tree,
        }

    def _append_small(self, connection: psycopg.Connection[dict[str, Any]], batch: Batch) -> None:
        """Head, events, claims and cells in one statement."""
        values = self._head_values(batch) | {
            "seqs": [e.seq for e in batch.events],
            "types": [e.type for e in batch.events],
            "streams": [e.stream for e in batch.events],
            "versions": [e.stream_version for e in batch.events],
            "instants": [e.recorded_at for e in batch.events],
            "envelopes": [e.envelope for e in batch.events],
            "bodies": [e.body for e in batch.events],
            "leaves": [e.leaf for e in batch.events],
            "scopes": [c.scope for c in batch.claims],
            "keys": [c.key for c in batch.claims],
            "ids": [c.command_id for c in batch.claims],
            "fingerprints": [c.fingerprint for c in batch.claims],
            "firsts": [c.seq_from for c in batch.claims],
            "lasts": [c.seq_to for c in batch.claims],
            "cells": "{" + ";".join(map(copying.box, batch.cells_added)) + "}",
        }
        # Prepared, so that it is planned once: it writes by keys alone.
        sql = self._sql["append_small"].encode()
        row = connection.execute(sql, values, prepare=True).fetchone()
        if row is None or row["moved"] != 1:
            raise Fenced(f"the head is not {batch.previous.seq} of epoch {self._epoch}")

    def _append_large(self, connection: psycopg.Connection[dict[str, Any]], batch: Batch) -> None:
        """Head first, then events, claims and cells by COPY; cells are given up before taken."""
        sql = self._sql["move_head"].encode()
        if connection.execute(sql, self._head_values(batch)).rowcount != 1:
            raise Fenced(f"the head is not {batch.previous.seq} of epoch {self._epoch}")
        if batch.cells_removed:
            gone = "{" + ";".join(map(copying.box, batch.cells_removed)) + "}"
            values = {"shard": self.shard, "cells": gone}
            removed = connection.execute(self._sql["remove_cells"].encode(), values).rowcount
            assert removed == len(batch.cells_removed), "each cell is removed once"
        copies = (
            ("journal", copying.events(self.shard, batch.events), batch.events),
            ("claim", copying.claims(self.shard, batch.claims), batch.claims),
            ("cell", copying.cells(self.shard, batch.cells_added), batch.cells_added),
        )
        with connection.cursor() as cursor:
            for table, data, rows in copies:
                if rows:
                    with cursor.copy(f"COPY {table} FROM STDIN (FORMAT binary)".encode()) as copy:
                        copy.write(data)

    def _append_rest(self, connection: psycopg.Connection[dict[str, Any]], batch: Batch) -> None:
        """What few batches have: finished tiles and offsets of the commands' topic."""
        if batch.tiles:
            values = {
                "shard": self.shard,
                "levels": [tile.level for tile in batch.tiles],
                "indexes": [tile.index for tile in batch.tiles],
                "hashes": [tile.hashes for tile in batch.tiles],
            }
            connection.execute(self._sql["add_tiles"].encode(), values)
        if batch.ingress:
            newest = {(place.topic, place.partition): place.offset for place in batch.ingress}
            offsets = {
                "shard": self.shard,
                "topics": [topic for topic, _ in newest],
                "partitions": [partition for _, partition in newest],
                "offsets": list(newest.values()),
            }
            connection.execute(self._sql["note_offsets"].encode(), offsets)

    def resolve(self, batch: Batch) -> bool:
        """After `CommitUnknown`: whether the batch is in the journal.

        The batch's own last leaf at its own last position is the proof. The session that wrote
        it is ended first, so that nothing arrives late. Offsets alone are said to be missing: to write them again
        changes nothing. Raises `JournalUnavailable`, `Fenced`.
        """
        self._drop()
        head = self.head()
        if head is None or head.epoch != self._epoch:
            raise Fenced(f"epoch {self._epoch} of shard {self.shard} is over")
        if not batch.events or head.seq < batch.head.seq:
            return False
        found = self.read(batch.head.seq - 1, 1)
        return bool(found) and found[0].leaf == batch.events[-1].leaf

"""Building a read model anew beside the old one, whose rows serve until the new ones take their place."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from connectors.postgres.journal import JournalReader, connect
from connectors.postgres.read_models import PUBLIC, ReadModelStore
from connectors.postgres.recorded import recorded
from projections.projection import Projection, state_hash
from schemas.registry import Registry

BATCH_EVENTS_MAX = 1_000

Tell = Callable[[int, int], None]
"""Hears how many events are folded, and how many there are."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild came to."""

    name: str
    version: int
    seq: int
    hash: str
    was_equal: bool
    """Whether the old rows had the same hash at the same position."""


def rebuild(
    dsn: str, registry: Registry, projection: Projection, tell: Tell = lambda *_: None
) -> Rebuilt:
    """Fold the log into tables of a schema of its own, then put their rows in place in one transaction.

    A follower that runs notices that its checkpoint is another one, ends, and begins anew from there.
    The projection must be fresh. Raises `JournalUnavailable`.
    """
    schema = f"rebuild_{projection.name}"
    store = ReadModelStore(projection, schema)
    reader = JournalReader(dsn)
    with connect(dsn) as connection:
        try:
            _make_tables(connection, projection, schema)
            seq = _fold(connection, reader, registry, store, tell)
            old = _put_in_place(connection, projection, schema, seq)
        finally:
            reader.close()
            connection.execute(_sql("DROP SCHEMA IF EXISTS {} CASCADE", schema))
    fresh = state_hash(projection)
    return Rebuilt(projection.name, projection.version, seq, fresh.hex(), old == (seq, fresh))


def outdated(dsn: str, projections: Iterable[Projection]) -> list[Projection]:
    """Those whose rows are there in another version. Raises `JournalUnavailable`."""
    with connect(dsn) as connection:
        rows = connection.execute("SELECT name, version FROM projection").fetchall()
    stored = {row["name"]: row["version"] for row in rows}
    return [p for p in projections if stored.get(p.name, p.version) != p.version]


def _sql(text: str, *names: str) -> sql.Composed:
    return sql.SQL(text).format(*(sql.Identifier(*name.split(".")) for name in names))


def _make_tables(connection: psycopg.Connection[Any], projection: Projection, schema: str) -> None:
    connection.execute(_sql("DROP SCHEMA IF EXISTS {} CASCADE", schema))
    connection.execute(_sql("CREATE SCHEMA {}", schema))
    for name in ("projection", *(table.name for table in projection.tables)):
        text = "CREATE TABLE {} (LIKE {} INCLUDING ALL)"
        connection.execute(_sql(text, f"{schema}.{name}", f"{PUBLIC}.{name}"))
    connection.execute(
        _sql(
            "INSERT INTO {} (name, version, seq, hash) VALUES (%s, %s, 0, %s)",
            f"{schema}.projection",
        ),
        (projection.name, projection.version, state_hash(projection)),
    )


def _fold(
    connection: psycopg.Connection[Any],
    reader: JournalReader,
    registry: Registry,
    store: ReadModelStore,
    tell: Tell,
) -> int:
    """Every event that there is, rows and checkpoint a batch at a time; the last position."""
    projection, seq = store.projection, 0
    while events := reader.read(seq, BATCH_EVENTS_MAX):
        before = state_hash(projection)
        for event in events:
            projection.apply(recorded(event, registry))
        projection.settle()
        changes = {table.name: table.drain() for table in projection.tables}
        with connection.transaction():
            store.write(connection, changes)
            store.checkpoint(connection, seq, events[-1].seq, before)
        seq = events[-1].seq
        head = reader.head()
        tell(seq, head.seq if head else seq)
    return seq


def _put_in_place(
    connection: psycopg.Connection[Any], projection: Projection, schema: str, seq: int
) -> tuple[int, bytes] | None:
    """The new rows for the old ones, and the checkpoint; readers see the one or the other.

    Gives the checkpoint that was there.
    """
    with connection.transaction():
        row = connection.execute(
            "SELECT seq, hash FROM projection WHERE name = %s FOR UPDATE", (projection.name,)
        ).fetchone()
        for table in projection.tables:
            connection.execute(_sql("DELETE FROM {}", f"{PUBLIC}.{table.name}"))
            text = "INSERT INTO {} SELECT * FROM {}"
            connection.execute(_sql(text, f"{PUBLIC}.{table.name}", f"{schema}.{table.name}"))
        connection.execute(
            "INSERT INTO projection (name, version, seq, hash) VALUES (%s, %s, %s, %s)"
            " ON CONFLICT (name) DO UPDATE SET version = excluded.version, seq = excluded.seq,"
            " hash = excluded.hash, poison = NULL",
            (projection.name, projection.version, seq, state_hash(projection)),
        )
    return None if row is None else (row["seq"], bytes(row["hash"]))

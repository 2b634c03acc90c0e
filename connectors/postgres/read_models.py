"""Where projections keep their rows: the changes of a batch, the checkpoint and the hash together."""

from typing import Any, get_type_hints

import psycopg
from psycopg import sql

from domain.journal import JournalUnavailable
from projections.projection import Projection, state_hash
from projections.table import Change, Table

PUBLIC = "public"


class CheckpointMoved(Exception):
    """Another process writes this projection."""


class ReadModelStore:
    """The tables of one projection in one schema of a database."""

    def __init__(self, projection: Projection, schema: str = PUBLIC) -> None:
        """Statements are made once for each table."""
        self.projection = projection
        self._checkpoint = sql.SQL(
            "UPDATE {} SET seq = %s, hash = %s WHERE name = %s AND version = %s AND seq = %s"
            " AND hash = %s"
        ).format(sql.Identifier(schema, "projection"))
        self._upserts = {table.name: _upsert(schema, table) for table in projection.tables}
        self._removes = {table.name: _remove(schema, table) for table in projection.tables}

    def write(self, connection: psycopg.Connection[Any], changes: dict[str, list[Change]]) -> None:
        """Bring the rows in step with what changed."""
        for table in self.projection.tables:
            of_table = changes[table.name]
            gone = [c.old[: table.key_fields] for c in of_table if c.new is None and c.old]
            if gone:
                connection.execute(self._removes[table.name], _columns(gone))
            put = [c.new for c in of_table if c.new is not None]
            if put:
                connection.execute(self._upserts[table.name], _columns(put))

    def checkpoint(
        self, connection: psycopg.Connection[Any], before: int, after: int, hash_before: bytes
    ) -> None:
        """Move from one position and hash to the next. Raises `CheckpointMoved`."""
        done = connection.execute(
            self._checkpoint,
            (
                after,
                state_hash(self.projection),
                self.projection.name,
                self.projection.version,
                before,
                hash_before,
            ),
        )
        if done.rowcount != 1:
            raise CheckpointMoved(f"{self.projection.name} is no longer at {before}")


def _columns(rows: list[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _arrays(table: Table, count: int) -> sql.Composable:
    """A placeholder with its type for each of the first columns."""
    hints = get_type_hints(table.row_type)
    kinds = (_kind(name, hints[name]) for name in table.columns[:count])
    return sql.SQL(", ").join(sql.SQL("%s::" + kind) for kind in kinds)


def _kind(name: str, annotation: type) -> str:
    """The type of a column's array; amounts of GPU time may pass 64 bits."""
    if annotation is not int:
        return "text[]"
    return "numeric[]" if name == "gpu_microseconds" else "bigint[]"


def _names(names: tuple[str, ...]) -> sql.Composable:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _upsert(schema: str, table: Table) -> sql.Composed:
    keys, rest = table.columns[: table.key_fields], table.columns[table.key_fields :]
    update = sql.SQL(", ").join(
        sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in rest
    )
    action = sql.SQL("UPDATE SET ") + update if rest else sql.SQL("NOTHING")
    return sql.SQL("INSERT INTO {} ({}) SELECT * FROM unnest({}) ON CONFLICT ({}) DO {}").format(
        sql.Identifier(schema, table.name),
        _names(table.columns),
        _arrays(table, len(table.columns)),
        _names(keys),
        action,
    )


def _remove(schema: str, table: Table) -> sql.Composed:
    keys = table.columns[: table.key_fields]
    same = sql.SQL(" AND ").join(
        sql.SQL("t.{0} = gone.{0}").format(sql.Identifier(name)) for name in keys
    )
    return sql.SQL("DELETE FROM {} AS t USING unnest({}) AS gone ({}) WHERE {}").format(
        sql.Identifier(schema, table.name), _arrays(table, len(keys)), _names(keys), same
    )


def is_waiting(dsn: str) -> bool:
    """Whether any request waits for a plan, as far as the read models know.

    Raises `JournalUnavailable`.
    """
    query = "SELECT 1 FROM reservation WHERE state = 'queued' LIMIT 1"
    try:
        with psycopg.connect(dsn) as connection:
            return connection.execute(query).fetchone() is not None
    except psycopg.OperationalError as error:
        raise JournalUnavailable(str(error).strip()) from error

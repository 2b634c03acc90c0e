"""The log is append-only in the database itself, even to the owner of its tables."""

from collections.abc import Iterator

import psycopg
import pytest

from connectors.postgres.journal import PostgresJournal
from tests import journal_batches as b


@pytest.fixture
def connection(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    """A connection of the owner, to a log with events, a claim and a full tile."""
    journal = PostgresJournal(postgres_dsn)
    journal.append(b.batch(journal.take_lease("writer"), 300, keys=["key"]))
    journal.close()
    with psycopg.connect(postgres_dsn) as connection:
        yield connection
        connection.rollback()


@pytest.mark.parametrize("table", ["journal", "claim", "tile"])
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE {} SET shard = shard",
        "UPDATE {} SET shard = 1 WHERE false",
        "DELETE FROM {}",
        "TRUNCATE {}",
        "TRUNCATE {} CASCADE",
    ],
)
def test_what_is_recorded_cannot_be_changed_by_sql(
    connection: psycopg.Connection, table: str, change: str
) -> None:
    before = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
    connection.commit()
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"):
        connection.execute(change.format(table).encode())
    connection.rollback()
    assert connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() == before
    assert before != (0,)


def test_a_row_that_conflicts_cannot_be_overwritten_either(connection: psycopg.Connection) -> None:
    sql = (
        b"INSERT INTO journal SELECT * FROM journal WHERE seq = 1"
        b" ON CONFLICT (shard, seq) DO UPDATE SET body = 'other'"
    )
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"):
        connection.execute(sql)


@pytest.mark.parametrize("table", ["journal", "claim", "tile"])
def test_nobody_else_was_granted_a_change(connection: psycopg.Connection, table: str) -> None:
    rows = connection.execute(
        "SELECT grantee, privilege_type FROM information_schema.table_privileges"
        " WHERE table_name = %s AND privilege_type IN ('UPDATE', 'DELETE', 'TRUNCATE')"
        " AND grantee <> current_user",
        (table,),
    ).fetchall()
    assert rows == []

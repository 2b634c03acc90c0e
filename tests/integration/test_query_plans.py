"""What the writer asks for is found by index, before the planner has any statistics."""

from collections.abc import Iterator
from typing import Any

import pytest

from connectors.postgres import copying
from connectors.postgres.journal import PostgresJournal
from domain.journal import Cell, Claim
from domain.timespan import Instant
from schemas.queries import queries
from tests import journal_batches as b

ROWS = 100_000
ASKED = 512


def cell(number: int) -> Cell:
    start = b.NOON + number // 1_000 * b.HOUR
    first = number % 1_000 * 1_000
    return Cell(first, first + 1_000, Instant(start), Instant(start + b.HOUR))


def claim(number: int) -> Claim:
    return Claim("tenant-a", f"key-{number:09}", bytes(16), bytes(32), number, number)


@pytest.fixture
def journal(postgres_dsn: str) -> Iterator[PostgresJournal]:
    """A log with many claims and cells, which nobody has analyzed."""
    journal = PostgresJournal(postgres_dsn)
    numbers = range(1, ROWS + 1)
    tables = {
        "cell": copying.cells(0, map(cell, numbers)),
        "claim": copying.claims(0, map(claim, numbers)),
    }
    connection = journal._open()
    for table, data in tables.items():
        connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)".encode())
        with (
            connection.cursor() as cursor,
            cursor.copy(f"COPY {table} FROM STDIN (FORMAT binary)".encode()) as copy,
        ):
            copy.write(data)
    yield journal
    journal.close()


def plan(journal: PostgresJournal, name: str, **values: Any) -> dict[str, Any]:
    sql = f"EXPLAIN (FORMAT json) {queries()[name]}".encode()
    row = journal._open().execute(sql, {"shard": 0, **values}).fetchone()
    assert row is not None
    return dict(row["QUERY PLAN"][0]["Plan"])


def kinds(node: dict[str, Any]) -> set[str]:
    """The kinds of step that a plan takes."""
    return {node["Node Type"]}.union(*(kinds(child) for child in node.get("Plans", ())))


WHOLE_TABLE = {"Seq Scan", "Hash Join", "Merge Join", "Materialize"}


@pytest.mark.parametrize("analyzed", [False, True])
def test_claims_and_cells_are_found_by_index(journal: PostgresJournal, analyzed: bool) -> None:
    if analyzed:
        journal._open().execute(b"ANALYZE")
    boxes = "{" + ";".join(copying.box(cell(n * 7)) for n in range(1, ASKED)) + "}"
    keys = [f"key-{n * 7:09}" for n in range(1, ASKED)]
    scopes = ["tenant-a"] * len(keys)
    assert not kinds(plan(journal, "remove_cells", cells=boxes)) & WHOLE_TABLE
    assert not kinds(plan(journal, "claims", scopes=scopes, keys=keys)) & WHOLE_TABLE


def test_each_cell_that_is_given_up_is_one_row(journal: PostgresJournal) -> None:
    head = journal.take_lease("writer")
    gone = [cell(n * 7) for n in range(1, ASKED)]
    journal.append(b.batch(head, 1, removed=gone))
    row = journal._open().execute(b"SELECT count(*) AS left FROM cell").fetchone()
    assert row == {"left": ROWS - len(gone)}


def test_claims_among_many_are_found(journal: PostgresJournal) -> None:
    asked = [("tenant-a", f"key-{n:09}") for n in (1, ROWS, ROWS + 1)]
    assert set(journal.claims(asked)) == set(asked[:2])

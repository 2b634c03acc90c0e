"""`export assignments`: one row per GPU and span, so that anyone can look for an overlap."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from domain.units import MILLI_PER_GPU
from schemas.json_form import instant_text

COLUMNS = (
    "reservation_id",
    "tenant_id",
    "pool_id",
    "node_id",
    "gpu_index",
    "first_milli",
    "width_milli",
    "start",
    "end",
    "class",
    "state",
)
USAGE_COLUMNS = ("pool_id", "hour", "tenant_id", "state", "gpu_microseconds")
ROWS_AT_ONCE = 10_000

Row = dict[str, Any]


def assignments(dsn: str) -> Iterator[Row]:
    """Every span that was ever held, cut at GPUs, as it was finally held."""
    for row in _rows(
        dsn, "SELECT * FROM calendar ORDER BY start, reservation_id, node_id, first_milli"
    ):
        first, end = row["first_milli"], row["first_milli"] + row["width_milli"]
        for gpu in range(first // MILLI_PER_GPU, (end + MILLI_PER_GPU - 1) // MILLI_PER_GPU):
            low = max(first, gpu * MILLI_PER_GPU)
            high = min(end, (gpu + 1) * MILLI_PER_GPU)
            yield {
                "reservation_id": row["reservation_id"],
                "tenant_id": row["tenant_id"],
                "pool_id": row["pool_id"],
                "node_id": row["node_id"],
                "gpu_index": gpu,
                "first_milli": low - gpu * MILLI_PER_GPU,
                "width_milli": high - low,
                "start": instant_text(row["start"]),
                "end": instant_text(row["end"]),
                "class": row["klass"],
                "state": row["state"],
            }


def usage(dsn: str) -> Iterator[Row]:
    """What each state came to, by pool, hour and tenant."""
    for row in _rows(dsn, "SELECT * FROM usage ORDER BY pool_id, hour, tenant_id, state"):
        amount = int(row["gpu_microseconds"])
        yield row | {"hour": instant_text(row["hour"]), "gpu_microseconds": amount}


def _rows(dsn: str, text: str) -> Iterator[Row]:
    with (
        psycopg.connect(dsn, row_factory=dict_row) as connection,
        connection.cursor(name="export") as cursor,
    ):
        cursor.itersize = ROWS_AT_ONCE
        yield from cursor.execute(text.encode())


def write_csv(path: Path, columns: tuple[str, ...], rows: Iterable[Row]) -> int:
    """As CSV; how many rows."""
    count = 0
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, columns)
        writer.writeheader()
        for count, row in enumerate(rows, 1):  # noqa: B007 - the last count is the answer
            writer.writerow(row)
    return count


def write_jsonl(path: Path, columns: tuple[str, ...], rows: Iterable[Row]) -> int:
    """As a JSON object a line; how many rows."""
    count = 0
    with path.open("w") as out:
        for count, row in enumerate(rows, 1):  # noqa: B007 - the last count is the answer
            out.write(json.dumps(row) + "\n")
    return count


WRITERS: dict[str, Callable[[Path, tuple[str, ...], Iterable[Row]], int]] = {
    "csv": write_csv,
    "jsonl": write_jsonl,
}
"""The formats of an export."""

"""FOCUS rows as files: CSV as the specification says, and Parquet with real decimals and instants."""

import csv
import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet as pq

from projections.focus import COLUMNS, DECIMALS, INSTANTS, INTEGERS, Row, decimal

ROWS_AT_ONCE = 20_000
DECIMAL = pa.decimal128(38, 24)
"""Exact for every cost: a price of 12 places times a quantity of 12."""

_INSTANT = "%Y-%m-%dT%H:%M:%SZ"


def _type(name: str) -> Any:  # noqa: ANN401 - pyarrow has no types
    if name in DECIMALS:
        return DECIMAL
    if name in INSTANTS:
        return pa.timestamp("s", "UTC")
    return pa.int64() if name in INTEGERS else pa.string()


SCHEMA = pa.schema([(name, _type(name)) for name in COLUMNS])


def write_csv(path: Path, rows: Iterable[Row]) -> int:
    """As CSV, null as nothing between commas; how many rows."""
    count = 0
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS)
        writer.writeheader()
        for count, row in enumerate(rows, 1):  # noqa: B007 - the last count is the answer
            writer.writerow(row)
    return count


def write_jsonl(path: Path, rows: Iterable[Row]) -> int:
    """As a JSON object a line, null as null; how many rows."""
    count = 0
    with path.open("w") as out:
        for count, row in enumerate(rows, 1):  # noqa: B007 - the last count is the answer
            out.write(json.dumps(row) + "\n")
    return count


def write_parquet(path: Path, rows: Iterable[Row]) -> int:
    """As Parquet, compressed, a row group at a time; how many rows."""
    count = 0
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for table in tables(rows):
            writer.write_table(table)
            count += table.num_rows
    return count


def tables(rows: Iterable[Row]) -> Iterator[Any]:
    """Rows as Arrow tables, `ROWS_AT_ONCE` each: the row groups of a file."""
    for chunk in _chunks(rows):
        arrays = [_column(name, [row[name] for row in chunk]) for name in COLUMNS]
        yield pa.Table.from_arrays(arrays, schema=SCHEMA)


def is_file_of(path: Path, rows: Iterable[Row]) -> bool:
    """Whether a Parquet file has exactly these rows in this order, as `write_parquet` writes them.

    Raises OSError, ValueError when it is no such file.
    """
    file = pq.ParquetFile(path)
    groups = iter(range(file.num_row_groups))
    for table in tables(rows):
        number = next(groups, None)
        # Parquet keeps instants to the millisecond.
        if number is None or not file.read_row_group(number).cast(SCHEMA).equals(table):
            return False
    return next(groups, None) is None


def _chunks(rows: Iterable[Row]) -> Iterator[tuple[Row, ...]]:
    remaining = iter(rows)
    while chunk := tuple(islice(remaining, ROWS_AT_ONCE)):
        yield chunk


def _column(name: str, values: list[str | None]) -> Any:  # noqa: ANN401 - pyarrow has no types
    """A column from its texts; what a type cannot hold exactly is an error, never rounded."""
    return pa.array(values, pa.string()).cast(_type(name))


def read_file(path: Path) -> Iterator[Row]:
    """The rows of an exported file of any kind, by its suffix, as text. Raises OSError, ValueError."""
    if path.suffix == ".parquet":
        for batch in pq.ParquetFile(path).iter_batches(ROWS_AT_ONCE):
            for row in batch.to_pylist():
                yield {name: _text(value) for name, value in row.items()}
        return
    if path.suffix == ".jsonl":
        with path.open() as file:
            yield from map(json.loads, file)
        return
    with path.open(newline="") as file:
        for values in csv.DictReader(file):
            yield {name: value or None for name, value in values.items()}


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, Decimal):
        return decimal(value)
    return value.strftime(_INSTANT) if isinstance(value, datetime) else str(value)


WRITERS = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}
"""The formats of an export of charges."""

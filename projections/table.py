"""Rows of a read model, what changed of them, and one hash over all of them.

A row is a named tuple whose first fields are its key. The hash is the sum, modulo 2^256, of the
SHA-256 of each row's canonical bytes: it does not depend on order, and follows each change.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

HASH_MODULUS = 1 << 256

Row = tuple[Any, ...]


class Change(NamedTuple):
    """One row before and after: None before it was, None after it is gone."""

    old: Row | None
    new: Row | None


def row_hash(name: str, row: Row) -> int:
    """The hash of one row, with its table's name."""
    return int.from_bytes(sha256(f"{name}{json.dumps(row)}".encode()).digest(), "big")


@dataclass(slots=True)
class Table:
    """The rows that may still change; final ones are forgotten here once they are written."""

    name: str
    row_type: type[Any]
    key_fields: int
    rows: dict[Row, Row] = field(default_factory=dict)
    count: int = 0
    hash: int = 0
    _before: dict[Row, Row | None] = field(default_factory=dict)
    _final: list[Row] = field(default_factory=list)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, the key's first."""
        return tuple(self.row_type._fields)

    def put(self, row: Row) -> None:
        """Set a row."""
        key = row[: self.key_fields]
        old = self.rows.get(key)
        if old != row:
            self._before.setdefault(key, old)
            self.rows[key] = row

    def remove(self, key: Row) -> None:
        """Drop a row, if it is there."""
        old = self.rows.pop(key, None)
        if old is not None:
            self._before.setdefault(key, old)

    def is_final(self, key: Row) -> None:
        """A row will not change any more."""
        self._final.append(key)

    def drain(self) -> list[Change]:
        """What changed since the last time; the hash follows."""
        changes: list[Change] = []
        for key, old in self._before.items():
            new = self.rows.get(key)
            if old == new:
                continue
            if old is not None:
                self.hash -= row_hash(self.name, old)
                self.count -= 1
            if new is not None:
                self.hash += row_hash(self.name, new)
                self.count += 1
            changes.append(Change(old, new))
        self.hash %= HASH_MODULUS
        self._before.clear()
        for key in self._final:
            self.rows.pop(key, None)
        self._final.clear()
        return changes

    def __iter__(self) -> Iterator[Row]:
        """The rows that may still change."""
        return iter(self.rows.values())

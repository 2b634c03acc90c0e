"""Rows as PostgreSQL's binary COPY wants them, built without a copy too many."""

import struct
from collections.abc import Iterable

from domain.journal import Cell, Claim, StoredEvent

_HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_TRAILER = struct.pack(">h", -1)
_EVENT = struct.Struct(">hiiiqi")
_TAIL = struct.Struct(">iqiqi")
_CELL = struct.Struct(">hiiidddd")
_CLAIM = struct.Struct(">hiii")
_LONG_PAIR = struct.Struct(">iqiq")
_LENGTH = struct.Struct(">i")

HALF = 0.5
"""Boxes are closed; half a unit off the upper corner makes them half-open."""


def events(shard: int, rows: Iterable[StoredEvent]) -> bytes:
    """For `COPY journal (shard, seq, type, stream, stream_version, recorded_at, envelope, ...)`."""
    parts = [_HEADER]
    for e in rows:
        kind, stream = e.type.encode(), e.stream.encode()
        parts += (
            _EVENT.pack(9, 4, shard, 8, e.seq, len(kind)),
            kind,
            _LENGTH.pack(len(stream)),
            stream,
            _TAIL.pack(8, e.stream_version, 8, e.recorded_at, len(e.envelope)),
            e.envelope,
            _LENGTH.pack(len(e.body)),
            e.body,
            _LENGTH.pack(len(e.leaf)),
            e.leaf,
        )
    parts.append(_TRAILER)
    return b"".join(parts)


def claims(shard: int, rows: Iterable[Claim]) -> bytes:
    """For `COPY claim (shard, scope, key, command_id, fingerprint, seq_from, seq_to)`."""
    parts = [_HEADER]
    for c in rows:
        scope, key = c.scope.encode(), c.key.encode()
        parts += (
            _CLAIM.pack(7, 4, shard, len(scope)),
            scope,
            _LENGTH.pack(len(key)),
            key,
            _LENGTH.pack(len(c.command_id)),
            c.command_id,
            _LENGTH.pack(len(c.fingerprint)),
            c.fingerprint,
            _LONG_PAIR.pack(8, c.seq_from, 8, c.seq_to),
        )
    parts.append(_TRAILER)
    return b"".join(parts)


def cells(shard: int, rows: Iterable[Cell]) -> bytes:
    """For `COPY cell (shard, cell)`."""
    parts = [_HEADER]
    parts += (
        _CELL.pack(2, 4, shard, 32, c.end_milli - HALF, c.end - HALF, c.first_milli, c.start)
        for c in rows
    )
    parts.append(_TRAILER)
    return b"".join(parts)


def box(c: Cell) -> str:
    """A cell as the text of a box."""
    return f"({c.end_milli - HALF!r},{c.end - HALF!r}),({c.first_milli},{c.start})"

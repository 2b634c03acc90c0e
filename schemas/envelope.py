"""What is said about each event, as bytes, and the leaf that seals envelope and body together.

The schema is frozen from the first event: leaf = SHA-256(0x00 || envelope || body).
docs/events-format.md tells how to recompute it.
"""

import io
import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from fastavro import schemaless_reader, schemaless_writer
from fastavro.schema import parse_schema

from schemas.codec import Malformed
from schemas.writing import long, octets, text

ENVELOPE_SCHEMA = parse_schema(
    json.loads((Path(__file__).parent / "avro" / "Envelope.avsc").read_text())
)


ID_BYTES = 16
FINGERPRINT_BYTES = 8


@dataclass(frozen=True, slots=True)
class Envelope:
    """Place, time and cause of one event. Ids are 16 bytes, instants microseconds."""

    shard: int
    seq: int
    event_id: bytes
    type: str
    schema_fingerprint: bytes
    stream: str
    stream_version: int
    recorded_at: int
    occurred_at: int
    principal: str
    on_behalf_of: str
    cause: str
    command_id: bytes
    key: str
    fingerprint: bytes
    topic: str
    partition: int
    offset: int


def encode_envelope(e: Envelope) -> bytes:
    """The envelope's Avro body; a test proves it byte-equal to fastavro's."""
    assert len(e.event_id) == len(e.command_id) == ID_BYTES, "ids are fixed"
    assert len(e.schema_fingerprint) == FINGERPRINT_BYTES, "fingerprints are fixed"
    return b"".join(
        (
            long(e.shard),
            long(e.seq),
            e.event_id,
            text(e.type),
            e.schema_fingerprint,
            text(e.stream),
            long(e.stream_version),
            long(e.recorded_at),
            long(e.occurred_at),
            text(e.principal),
            text(e.on_behalf_of),
            text(e.cause),
            e.command_id,
            text(e.key),
            octets(e.fingerprint),
            text(e.topic),
            long(e.partition),
            long(e.offset),
        )
    )


def reference_encode(e: Envelope) -> bytes:
    """The same bytes by fastavro, to compare with."""
    buffer = io.BytesIO()
    values = {name: getattr(e, name) for name in e.__dataclass_fields__}
    schemaless_writer(buffer, ENVELOPE_SCHEMA, values, strict=True)
    return buffer.getvalue()


def decode_envelope(data: bytes) -> Envelope:
    """The envelope that bytes hold, all of them. Raises `Malformed`.

    Bytes behind it would let the border to the body be moved under the same leaf.
    """
    buffer = io.BytesIO(data)
    try:
        values: Any = schemaless_reader(buffer, ENVELOPE_SCHEMA, None)
    except (EOFError, ValueError, IndexError, TypeError) as error:
        raise Malformed(f"envelope: {error or type(error).__name__}") from error
    if buffer.tell() != len(data):
        raise Malformed(f"envelope: {len(data) - buffer.tell()} bytes too many")
    return Envelope(**values)


@dataclass(frozen=True, slots=True)
class Glimpse:
    """What of an envelope is needed for every record: what it is called and when it occurred."""

    event_id: bytes
    occurred_at: int


def glimpse(data: bytes) -> Glimpse:
    """Two fields of an envelope that is known to be whole, sooner than all of them.

    The layout is frozen; a test compares with `decode_envelope`.
    """
    at = _behind_long(data, _behind_long(data, 0))
    event_id = data[at : at + ID_BYTES]
    at = _behind_text(data, at + ID_BYTES) + FINGERPRINT_BYTES
    at = _behind_long(data, _behind_text(data, at))
    return Glimpse(event_id, _long_at(data, _behind_long(data, at)))


def _behind_long(data: bytes, at: int) -> int:
    while data[at] & 0x80:
        at += 1
    return at + 1


def _behind_text(data: bytes, at: int) -> int:
    return _behind_long(data, at) + _long_at(data, at)


def _long_at(data: bytes, at: int) -> int:
    number = shift = 0
    while (byte := data[at]) & 0x80:
        number |= (byte & 0x7F) << shift
        shift += 7
        at += 1
    number |= byte << shift
    return (number >> 1) ^ -(number & 1)


def leaf_of(envelope: bytes, body: bytes) -> bytes:
    """The leaf hash of an event in its shard's Merkle tree."""
    return sha256(b"\0" + envelope + body).digest()

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

ENVELOPE_SCHEMA = parse_schema(
    json.loads((Path(__file__).parent / "avro" / "Envelope.avsc").read_text())
)


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


def _varint(number: int) -> bytes:
    """A long as Avro writes it: zigzag, seven bits a byte, lowest first."""
    number = number << 1 ^ number >> 63
    if number < 128:
        return _SMALL[number]
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


_SMALL = [bytes((number,)) for number in range(128)]


def _text(text: str) -> bytes:
    raw = text.encode()
    return _varint(len(raw)) + raw


def encode_envelope(e: Envelope) -> bytes:
    """The envelope's Avro body; a test proves it byte-equal to fastavro's."""
    return b"".join(
        (
            _varint(e.shard),
            _varint(e.seq),
            e.event_id,
            _text(e.type),
            e.schema_fingerprint,
            _text(e.stream),
            _varint(e.stream_version),
            _varint(e.recorded_at),
            _varint(e.occurred_at),
            _text(e.principal),
            _text(e.on_behalf_of),
            _text(e.cause),
            e.command_id,
            _text(e.key),
            _varint(len(e.fingerprint)),
            e.fingerprint,
            _text(e.topic),
            _varint(e.partition),
            _varint(e.offset),
        )
    )


def reference_encode(e: Envelope) -> bytes:
    """The same bytes by fastavro, to compare with."""
    buffer = io.BytesIO()
    values = {name: getattr(e, name) for name in e.__dataclass_fields__}
    schemaless_writer(buffer, ENVELOPE_SCHEMA, values, strict=True)
    return buffer.getvalue()


def decode_envelope(data: bytes) -> Envelope:
    """The envelope that bytes hold."""
    values: Any = schemaless_reader(io.BytesIO(data), ENVELOPE_SCHEMA, None)
    return Envelope(**values)


def leaf_of(envelope: bytes, body: bytes) -> bytes:
    """The leaf hash of an event in its shard's Merkle tree."""
    return sha256(b"\0" + envelope + body).digest()

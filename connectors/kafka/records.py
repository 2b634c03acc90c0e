"""Events as Kafka records: the stored bytes unchanged, and headers that say what they are.

The value is the Avro body in the Confluent wire format; the headers are CloudEvents' (binary mode),
the position, the writer's epoch, and the whole envelope, so that a reader can recompute the leaf.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from domain.journal import StoredEvent
from domain.timespan import Instant
from schemas.codec import Malformed
from schemas.envelope import decode_envelope, glimpse, leaf_of
from schemas.json_form import instant_text
from schemas.registry import Registry

MAGIC = b"\0"
WIRE_HEAD = struct.Struct(">bi")
Header = tuple[str, bytes]


class BadRecord(ValueError):
    """A record that is no event of ours; the words say what is wrong with it."""


@dataclass(frozen=True, slots=True)
class EventRecord:
    """What of a record is not its place: key, value, headers."""

    key: bytes
    value: bytes
    headers: Sequence[Header]


def wire(schema_id: int, body: bytes) -> bytes:
    """A body in the Confluent wire format: a zero byte, the schema's id, the body."""
    return WIRE_HEAD.pack(0, schema_id) + body


def unwire(value: bytes | None) -> tuple[int, bytes]:
    """The schema's id and the body of a value in the wire format. Raises `BadRecord`."""
    if value is None:
        raise BadRecord("the value is null")
    if len(value) < WIRE_HEAD.size or value[:1] != MAGIC:
        raise BadRecord("the value is not in the Confluent wire format")
    return WIRE_HEAD.unpack_from(value)[1], value[WIRE_HEAD.size :]


def record_of(event: StoredEvent, registry: Registry, shard: int, epoch: int) -> EventRecord:
    """An event as it goes to the topic."""
    contract = registry.by_type[event.type]
    seen = glimpse(event.envelope)
    headers = [
        ("ce_specversion", b"1.0"),
        ("ce_id", seen.event_id.hex().encode()),
        ("ce_type", event.type.encode()),
        ("ce_source", f"gpuledger/shard/{shard}".encode()),
        ("ce_time", instant_text(seen.occurred_at).encode()),
        ("ce_subject", event.stream.encode()),
        ("lg_seq", str(event.seq).encode()),
        ("lg_epoch", str(epoch).encode()),
        ("lg_envelope", event.envelope),
    ]
    return EventRecord(event.stream.encode(), wire(contract.id, event.body), headers)


def header(headers: Iterable[Header], name: str) -> bytes:
    """The value of a header. Raises `BadRecord` when it is missing."""
    for key, value in headers:
        if key == name and value is not None:
            return value
    raise BadRecord(f"the header {name} is missing")


def number(headers: Iterable[Header], name: str) -> int:
    """A header that is a decimal number. Raises `BadRecord`."""
    value = header(headers, name)
    if not value.isdigit():
        raise BadRecord(f"the header {name} is no number")
    return int(value)


class Record(Protocol):
    """What of a record is not its place, as it is read."""

    @property
    def key(self) -> bytes | None:
        """The stream."""
        ...

    @property
    def value(self) -> bytes | None:
        """The body in the wire format."""
        ...

    @property
    def headers(self) -> Sequence[Header]:
        """What the body is."""
        ...


def event_of(record: Record, registry: Registry) -> tuple[StoredEvent, int]:
    """The event that a record holds, its leaf made anew, and its writer's epoch.

    The leaf covers envelope and body; whatever else a record says of them is held against them.
    Raises `BadRecord` when record and envelope contradict each other.
    """
    schema_id, body = unwire(record.value)
    given = dict(record.headers)
    envelope_bytes = header(record.headers, "lg_envelope")
    try:
        envelope = decode_envelope(envelope_bytes)
    except Malformed as error:
        raise BadRecord(str(error)) from error
    contract = registry.by_id.get(schema_id)
    if contract is None:
        raise BadRecord(f"no schema of this release has the id {schema_id}")
    stream = envelope.stream.encode()
    agrees = {
        "lg_seq": given.get("lg_seq") == str(envelope.seq).encode(),
        "the schema's id": contract.type == envelope.type,
        "the key": record.key == stream,
        "ce_subject": given.get("ce_subject") == stream,
        "ce_type": given.get("ce_type") == envelope.type.encode(),
        "ce_id": given.get("ce_id") == envelope.event_id.hex().encode(),
    }
    if not all(agrees.values()):
        wrong = next(name for name, holds in agrees.items() if not holds)
        raise BadRecord(f"{wrong} is not what the envelope of event {envelope.seq} says")
    event = StoredEvent(
        envelope.seq,
        envelope.type,
        envelope.stream,
        envelope.stream_version,
        Instant(envelope.recorded_at),
        envelope_bytes,
        body,
        leaf_of(envelope_bytes, body),
    )
    return event, number(record.headers, "lg_epoch")

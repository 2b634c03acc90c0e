"""Stored events as readers get them."""

from domain.ids import CommandId, EventId, PrincipalId
from domain.journal import StoredEvent
from domain.record import Recorded
from domain.timespan import Instant
from schemas.envelope import decode_envelope
from schemas.registry import Registry

NO_COMMAND = bytes(16)


def recorded(event: StoredEvent, registry: Registry) -> Recorded:
    """Envelope and body of an event, read. Raises `codec.Malformed`, `UnknownSchema`."""
    e = decode_envelope(event.envelope)
    command = None if e.command_id == NO_COMMAND else CommandId(e.command_id.hex())
    return Recorded(
        e.shard,
        e.seq,
        EventId(e.event_id.hex()),
        e.stream_version,
        Instant(e.recorded_at),
        Instant(e.occurred_at),
        PrincipalId(e.principal),
        e.cause,
        command,
        registry.decode(e.type, event.body),
    )

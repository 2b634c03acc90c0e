"""A stored event as JSON: the fact, and of its envelope what readers ask for."""

from typing import Any

from schemas.envelope import decode_envelope
from schemas.json_form import instant_text, render
from schemas.registry import Registry


def event_json(envelope_bytes: bytes, body: bytes, registry: Registry) -> dict[str, Any]:
    """An event as the faces show it. Raises `codec.Malformed`, `UnknownSchema`."""
    envelope = decode_envelope(envelope_bytes)
    return {
        "seq": envelope.seq,
        "type": envelope.type,
        "stream": envelope.stream,
        "recorded_at": instant_text(envelope.recorded_at),
        "occurred_at": instant_text(envelope.occurred_at),
        "principal": envelope.principal,
        "fact": render(registry.decode(envelope.type, body)),
    }

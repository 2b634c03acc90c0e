"""Frames of the sequencer's socket: a length, a number of the sender's choice, an Avro record."""

import io
import json
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from fastavro import schemaless_reader, schemaless_writer
from fastavro.schema import parse_schema

from domain.ids import PrincipalId, TenantId
from domain.principal import Principal, Role
from domain.record import IngressPlace
from domain.refusals import Offer, Reason
from domain.submission import (
    Outcome,
    OutcomeFact,
    OutcomeKind,
    RefusalTold,
    Submission,
)
from domain.timespan import Instant
from schemas.codec import Malformed

FRAME_BYTES_MAX = 4 << 20
"""The largest frame: a plan or a long outcome. Longer ones end the connection."""

T = TypeVar("T")

HEADER = struct.Struct(">IQ")

_FOLDER = Path(__file__).parent / "avro"
_SUBMISSION = parse_schema(json.loads((_FOLDER / "Submission.avsc").read_text()))
_OUTCOME = parse_schema(json.loads((_FOLDER / "Outcome.avsc").read_text()))


def frame(number: int, payload: bytes) -> bytes:
    """A payload as it travels."""
    return HEADER.pack(len(payload), number) + payload


def split(buffer: bytearray) -> list[tuple[int, bytes]]:
    """The whole frames at the front of a buffer, taken out of it. Raises `Malformed`."""
    frames: list[tuple[int, bytes]] = []
    at = 0
    while len(buffer) - at >= HEADER.size:
        length, number = HEADER.unpack_from(buffer, at)
        if length > FRAME_BYTES_MAX:
            raise Malformed(f"a frame of {length} bytes; the most is {FRAME_BYTES_MAX}")
        if len(buffer) - at - HEADER.size < length:
            break
        at += HEADER.size
        frames.append((number, bytes(buffer[at : at + length])))
        at += length
    del buffer[:at]
    return frames


def _write(schema: Any, values: dict[str, Any]) -> bytes:  # noqa: ANN401 - a parsed schema
    buffer = io.BytesIO()
    schemaless_writer(buffer, schema, values, strict=True)
    return buffer.getvalue()


def _read(schema: Any, payload: bytes) -> dict[str, Any]:  # noqa: ANN401 - a parsed schema
    buffer = io.BytesIO(payload)
    try:
        values: dict[str, Any] = schemaless_reader(buffer, schema, None)
    except (EOFError, ValueError, IndexError, TypeError) as error:
        raise Malformed(f"not a frame: {error or type(error).__name__}") from error
    if buffer.tell() != len(payload):
        raise Malformed(f"not a frame: {len(payload) - buffer.tell()} bytes too many")
    return values


def _word(kind: Callable[[Any], T], word: object) -> T:
    """A member of an enumeration. Raises `Malformed`: the peer is of another release."""
    try:
        return kind(word)
    except ValueError as error:
        raise Malformed(f"not a frame: {error}") from error


def encode_submission(s: Submission) -> bytes:
    """A submission's payload."""
    place = s.ingress
    return _write(
        _SUBMISSION,
        {
            "principal": s.principal.id,
            "role": s.principal.role.value,
            "tenant": s.principal.tenant_id or "",
            "on_behalf_of": s.principal.on_behalf_of or "",
            "key": s.key,
            "type": s.type,
            "body": s.body,
            "at": -1 if s.at is None else s.at,
            "topic": place.topic if place else "",
            "partition": place.partition if place else -1,
            "offset": place.offset if place else -1,
            "dry_run": s.dry_run,
        },
    )


def decode_submission(payload: bytes) -> Submission:
    """The submission of a payload. Raises `Malformed`."""
    v = _read(_SUBMISSION, payload)
    principal = Principal(
        PrincipalId(v["principal"]),
        _word(Role, v["role"]),
        TenantId(v["tenant"]) if v["tenant"] else None,
        PrincipalId(v["on_behalf_of"]) if v["on_behalf_of"] else None,
    )
    place = IngressPlace(v["topic"], v["partition"], v["offset"]) if v["topic"] else None
    at = None if v["at"] < 0 else Instant(v["at"])
    return Submission(principal, v["key"], v["type"], v["body"], at, place, v["dry_run"])


def encode_outcome(o: Outcome) -> bytes:
    """An outcome's payload; facts that make it longer than a frame are left in the journal."""
    payload = _outcome(o)
    return payload if len(payload) <= FRAME_BYTES_MAX else _outcome(replace(o, facts=()))


def _outcome(o: Outcome) -> bytes:
    refusal = o.refusal
    return _write(
        _OUTCOME,
        {
            "kind": o.kind.value,
            "command_id": o.command_id,
            "seq_from": o.seq_from,
            "seq_to": o.seq_to,
            "facts": [
                {
                    "seq": f.seq,
                    "type": f.type,
                    "stream": f.stream,
                    "stream_version": f.stream_version,
                    "recorded_at": f.recorded_at,
                    "body": f.body,
                }
                for f in o.facts
            ],
            "reason": int(refusal.reason) if refusal else 0,
            "evidence": dict(refusal.facts) if refusal else {},
            "offers": [
                {"start": offer.start, "end": offer.end}
                for offer in (refusal.offers if refusal else ())
            ],
            "is_repeat": o.is_repeat,
            "problem": o.problem,
        },
    )


def decode_outcome(payload: bytes) -> Outcome:
    """The outcome of a payload. Raises `Malformed`."""
    v = _read(_OUTCOME, payload)
    refusal = None
    if v["reason"]:
        offers = tuple(Offer(Instant(o["start"]), Instant(o["end"])) for o in v["offers"])
        refusal = RefusalTold(_word(Reason, v["reason"]), v["evidence"], offers)
    return Outcome(
        _word(OutcomeKind, v["kind"]),
        v["command_id"],
        v["seq_from"],
        v["seq_to"],
        tuple(OutcomeFact(**fact) for fact in v["facts"]),
        refusal,
        v["is_repeat"],
        v["problem"],
    )

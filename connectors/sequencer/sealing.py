"""From decided facts to stored events: place, envelope, body and leaf of each."""

import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from domain.decide.transcript import Written
from domain.ids import derive
from domain.journal import StoredEvent
from domain.submission import Submission
from domain.timespan import Instant
from schemas.envelope import Envelope, encode_envelope, leaf_of
from schemas.registry import Registry

EVENT_BYTES_MAX = 60 << 10
"""One event is at most this long, body and envelope; larger intents become several facts."""

NO_ID = bytes(16)
DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True)
class Cause:
    """Why facts are written: a command with its claim, or the ledger's own doing."""

    kind: str
    command_id: bytes = NO_ID
    principal: str = "system"
    on_behalf_of: str = ""
    key: str = ""
    fingerprint: bytes = b""
    topic: str = ""
    partition: int = -1
    offset: int = -1


def cause_of(submission: Submission, command_id: bytes, fingerprint: bytes) -> Cause:
    """A command as the cause of its facts."""
    place = submission.ingress
    return Cause(
        "command",
        command_id,
        submission.principal.id,
        submission.principal.on_behalf_of or "",
        submission.key,
        fingerprint,
        place.topic if place else "",
        place.partition if place else -1,
        place.offset if place else -1,
    )


def fingerprint_of(secret: bytes, submission: Submission) -> bytes:
    """HMAC-SHA-256 over what a command says: its type and its canonical bytes."""
    return hmac.digest(secret, submission.type.encode() + b"\0" + submission.body, "sha256")


def command_digest(submission: Submission) -> bytes:
    """The SHA-256 of a command's bytes, for the record of a quarantine."""
    return sha256(submission.body).digest()


class Sealer:
    """Gives facts their places in one shard's order."""

    def __init__(self, registry: Registry, shard: int) -> None:
        """Write by the newest contracts."""
        self._registry = registry
        self._shard = shard

    def seal(
        self, written: Iterable[Written], cause: Cause, seq: int, recorded_at: Instant
    ) -> list[StoredEvent]:
        """Stored events behind a position, one microsecond apart from an instant on."""
        events: list[StoredEvent] = []
        for ordinal, entry in enumerate(written):
            contract, body = self._registry.encode(entry.fact)
            seq += 1
            parent = cause.command_id
            name = str(ordinal) if parent != NO_ID else f"{self._shard}/{seq}"
            at = Instant(recorded_at + ordinal)
            stream = entry.fact.stream
            envelope = encode_envelope(
                Envelope(
                    self._shard,
                    seq,
                    bytes.fromhex(derive(parent, name)),
                    contract.type,
                    contract.fingerprint,
                    stream,
                    entry.stream_version,
                    at,
                    entry.occurred_at,
                    cause.principal,
                    cause.on_behalf_of,
                    cause.kind,
                    parent,
                    cause.key,
                    cause.fingerprint,
                    cause.topic,
                    cause.partition,
                    cause.offset,
                )
            )
            if len(envelope) + len(body) > EVENT_BYTES_MAX:
                raise EventTooLarge(contract.type, len(envelope) + len(body))
            leaf = leaf_of(envelope, body)
            events.append(
                StoredEvent(
                    seq, contract.type, stream, entry.stream_version, at, envelope, body, leaf
                )
            )
        return events


class EventTooLarge(ValueError):
    """A fact that does not fit into one event."""

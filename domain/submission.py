"""A command on its way in, and what came of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from domain.principal import Principal
from domain.record import IngressPlace
from domain.refusals import Offer, Reason
from domain.timespan import Instant


class OutcomeKind(StrEnum):
    """How a command ended. The last two are not remembered: the same key may be sent again."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    NO_EFFECT = "no-effect"
    QUARANTINED = "quarantined"
    REJECTED = "rejected"
    """Malformed, or a key used with another body: no claim, no fact."""
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Submission:
    """A command with its principal and key. `body` is its Avro body under `type`."""

    principal: Principal
    key: str
    type: str
    body: bytes
    at: Instant | None = None
    """Its instant under a virtual clock."""
    ingress: IngressPlace | None = None
    dry_run: bool = False
    """Decide, tell, and take it all back: no claim, no fact."""


@dataclass(frozen=True, slots=True)
class OutcomeFact:
    """A fact that a command came to, as it lies in the journal."""

    seq: int
    type: str
    stream: str
    stream_version: int
    recorded_at: Instant
    body: bytes


@dataclass(frozen=True, slots=True)
class RefusalTold:
    """A refusal, ready for the edge to render."""

    reason: Reason
    facts: Mapping[str, str]
    offers: tuple[Offer, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a command, once it is durable."""

    kind: OutcomeKind
    command_id: str = ""
    seq_from: int = 0
    seq_to: int = 0
    facts: tuple[OutcomeFact, ...] = ()
    refusal: RefusalTold | None = None
    is_repeat: bool = False
    """The key was used before with this body: this is the outcome that it had."""
    problem: str = ""
    """Why it is unavailable or was quarantined."""


TICK = "Tick"
"""The type of a submission that only brings a virtual clock on: no body, no claim, no fact."""


UNREADABLE = "Unreadable"
"""The type of a submission that stands for bytes which are no command: its body is their SHA-256 and
why they are none. It becomes a CommandQuarantined under a key of its own."""


class CommandGateway(Protocol):
    """The way to the shard's one writer."""

    def submit(self, submissions: Sequence[Submission]) -> Sequence[Outcome]:
        """The durable outcomes of commands, in their order."""
        ...

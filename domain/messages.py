"""What others are told beside facts: records with contracts of their own that never enter the log."""

from collections.abc import Mapping
from dataclasses import dataclass

from domain.ids import TenantId
from domain.refusals import Offer
from domain.timespan import Instant


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """What a command came to, told to whoever published it; told again, it says the same."""

    command_id: str
    key: str
    command: str
    outcome: str
    subject: str
    reason: str
    evidence: Mapping[str, str]
    offers: tuple[Offer, ...]
    seq_from: int
    seq_to: int
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class ClosedCharge:
    """One charge row of a closed period, its columns named as FOCUS 1.4 names them."""

    row_id: str
    tenant_id: TenantId
    start: Instant
    closed_seq: int
    number: int
    rows: int
    columns: Mapping[str, str]


MESSAGES: dict[str, type] = {
    message.__name__: message for message in (CommandOutcome, ClosedCharge)
}
"""Every message, by the name that its schema bears."""

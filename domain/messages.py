"""What others are told beside facts: records with contracts of their own that never enter the log."""

from collections.abc import Mapping
from dataclasses import dataclass

from domain.refusals import Offer


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


MESSAGES: dict[str, type] = {CommandOutcome.__name__: CommandOutcome}
"""Every message, by the name that its schema bears."""

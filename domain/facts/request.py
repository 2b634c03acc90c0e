"""Facts of commands that changed nothing else: refused, without effect, or poisonous."""

from collections.abc import Mapping
from dataclasses import dataclass

from domain.ids import CommandId
from domain.refusals import Asked, Offer


class OfRequest:
    """A fact of a command."""

    __slots__ = ()
    command_id: CommandId

    @property
    def stream(self) -> str:
        """The command's stream."""
        return f"request/{self.command_id}"


@dataclass(frozen=True, slots=True)
class CommandRefused(OfRequest):
    """A command got a no, with its evidence and what would fit instead."""

    command_id: CommandId
    command: str
    reason: str
    evidence: Mapping[str, str]
    offers: tuple[Offer, ...]
    asked: Asked | None


@dataclass(frozen=True, slots=True)
class CommandHadNoEffect(OfRequest):
    """A command asked for what already is."""

    command_id: CommandId
    command: str
    why: str


@dataclass(frozen=True, slots=True)
class CommandQuarantined(OfRequest):
    """A command made the ledger stumble; it was set apart and the rest went on."""

    command_id: CommandId
    command: str
    digest: bytes
    error: str
    at_seq: int

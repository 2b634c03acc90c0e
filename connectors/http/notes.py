"""Notes: sealed before a command is parsed, opened for those who may read them."""

from typing import Any, Protocol

from domain.commands import Command
from domain.ids import PrincipalId
from domain.principal import Principal, Role
from domain.sealed import NOTE_CHARACTERS_MAX, Sealed
from schemas.json_form import BadField, text_of

FIELD = "note"
ERASED = "(erased)"
_MAY_READ = frozenset({Role.OPERATOR, Role.AUDITOR})


class Sealer(Protocol):
    """Who holds the keys."""

    async def seal(self, subject_id: PrincipalId, text: str) -> Sealed:
        """Text under its subject's key."""
        ...

    async def unseal(self, sealed: Sealed) -> str | None:
        """The text; None when its subject was erased."""
        ...


async def seal_note(
    sealer: Sealer, who: Principal, command: type[Command], values: dict[str, Any]
) -> None:
    """Put the box of a note in its place. Raises `BadField` when it is no short text."""
    if FIELD not in command.__dataclass_fields__ or values.get(FIELD) is None:
        return
    text = text_of(values[FIELD], f"/{FIELD}")
    if not 0 < len(text) <= NOTE_CHARACTERS_MAX:
        raise BadField(f"/{FIELD}", f"must have 1 to {NOTE_CHARACTERS_MAX} characters")
    sealed = await sealer.seal(who.id, text)
    values[FIELD] = {"subject_id": sealed.subject_id, "box": sealed.box.hex()}


async def open_notes(sealer: Sealer, who: Principal, facts: list[dict[str, Any]]) -> None:
    """In facts as JSON: the words of a note for those who may read it, else nothing of it."""
    for fact in facts:
        box = fact.get(FIELD)
        if not isinstance(box, dict):
            continue
        if who.role in _MAY_READ or box["subject_id"] == who.id:
            sealed = Sealed(PrincipalId(box["subject_id"]), bytes.fromhex(box["box"]))
            text = await sealer.unseal(sealed)
            fact[FIELD] = ERASED if text is None else text
        else:
            fact[FIELD] = None

"""Who sees which facts: a tenant its own, the other roles that may read, all."""

from collections.abc import Iterable, Sequence
from typing import Any

from domain.commands import Command
from domain.principal import Principal, Role
from domain.submission import OutcomeFact

Decoded = tuple[OutcomeFact, Any]
"""A fact as it is stored, and as the domain knows it."""


def own_facts(
    facts: Sequence[Decoded], reader: Principal, command: Command, command_id: str
) -> Iterable[Decoded]:
    """The facts of an outcome that its reader may see.

    A booking may make others give way, and a give-back may heal others: what became of them is
    written by the same command, but is not told to its tenant.
    """
    if reader.role is not Role.TENANT:
        return facts
    mine = {
        fact.reservation_id for _, fact in facts if is_own(fact, reader) and _names_one(fact)
    } | {getattr(command, "reservation_id", None)}
    return [
        (stored, fact)
        for stored, fact in facts
        if is_own(fact, reader)
        or stored.stream == f"request/{command_id}"
        or getattr(fact, "reservation_id", "") in mine
    ]


def is_own(fact: Any, reader: Principal) -> bool:  # noqa: ANN401 - any fact
    """Whether a fact says the reader's own tenant."""
    return reader.tenant_id is not None and getattr(fact, "tenant_id", None) == reader.tenant_id


def _names_one(fact: Any) -> bool:  # noqa: ANN401 - any fact
    return hasattr(fact, "reservation_id")

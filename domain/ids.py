"""Names of things, as strings that cannot be mixed up, and how new ones are derived without dice."""

from hashlib import sha1
from typing import NewType

TenantId = NewType("TenantId", str)
PoolId = NewType("PoolId", str)
NodeId = NewType("NodeId", str)
ReservationId = NewType("ReservationId", str)
MaintenanceId = NewType("MaintenanceId", str)
GrantId = NewType("GrantId", str)
PlanId = NewType("PlanId", str)
OrderId = NewType("OrderId", str)
CommandId = NewType("CommandId", str)
EventId = NewType("EventId", str)
PrincipalId = NewType("PrincipalId", str)

NAME_CHARACTERS_MAX = 63
_NAME_ALPHABET = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:")
_COMMAND_NAMESPACE = bytes.fromhex("6f1cbb7e0a5d4d0f9a6c2f6d51a3c7e4")


def derive(parent: bytes, name: str) -> str:
    """A UUIDv5 (RFC 9562) of `name` below a parent's 16 bytes, as 32 lower-case hex digits."""
    digest = bytearray(sha1(parent + name.encode(), usedforsecurity=False).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    return digest.hex()


def command_id(scope: str, key: str) -> CommandId:
    """The id of the command that a scope (tenant or principal) sent under an idempotency key."""
    return CommandId(derive(_COMMAND_NAMESPACE, f"{scope}\0{key}"))


def child_id(command: CommandId, name: str) -> str:
    """An id for something that a command brings into being: the same command, the same id."""
    return derive(bytes.fromhex(command), name)


def is_name(text: str) -> bool:
    """Whether a text may name a tenant, pool, node, model or label."""
    return 0 < len(text) <= NAME_CHARACTERS_MAX and _NAME_ALPHABET.issuperset(text)

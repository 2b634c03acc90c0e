"""Who speaks: every command and every read has a principal."""

from dataclasses import dataclass
from enum import StrEnum

from domain.ids import PrincipalId, TenantId


class Role(StrEnum):
    """What a principal is to the ledger."""

    TENANT = "tenant"
    OPERATOR = "operator"
    FINANCE = "finance"
    AUDITOR = "auditor"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Principal:
    """A human or a service, known by a random id; names live in a directory beside the log."""

    id: PrincipalId
    role: Role
    tenant_id: TenantId | None = None
    on_behalf_of: PrincipalId | None = None

    @property
    def scope(self) -> str:
        """Where its idempotency keys live: its tenant, or itself when it has none."""
        return f"tenant/{self.tenant_id}" if self.tenant_id else f"principal/{self.id}"


@dataclass(frozen=True, slots=True)
class Entry:
    """Who a principal is, as the directory beside the log knows it; no fact ever holds it."""

    subject_id: PrincipalId
    name: str
    email: str = ""


SYSTEM = Principal(PrincipalId("system"), Role.SERVICE)
"""The ledger itself, when a timer or a brake acts."""

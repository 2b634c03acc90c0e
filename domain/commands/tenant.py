"""Commands on tenants and their quota."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.consent import OverflowMode
from domain.ids import GrantId, PoolId, TenantId
from domain.timespan import FAR_FUTURE, Instant


@dataclass(frozen=True, slots=True)
class RegisterTenant:
    """Let a team hold quota and reserve."""

    tenant_id: TenantId
    parent_id: TenantId | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TagTenant:
    """Change a team's tags for what it books from now on."""

    tenant_id: TenantId
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CloseTenant:
    """Let a team book no more."""

    tenant_id: TenantId


@dataclass(frozen=True, slots=True)
class GrantQuota:
    """Entitle a tenant to an amount of a pool over a span; without a start, from now on."""

    tenant_id: TenantId
    pool_id: PoolId
    nominal_milli: int
    borrow_milli: int = 0
    lend_milli: int = 0
    start: Instant | None = None
    end: Instant = FAR_FUTURE


@dataclass(frozen=True, slots=True)
class AmendQuota:
    """Change a grant; what is booked stays booked."""

    grant_id: GrantId
    nominal_milli: int
    borrow_milli: int = 0
    lend_milli: int = 0
    end: Instant = FAR_FUTURE


@dataclass(frozen=True, slots=True)
class ConsentOverflow:
    """Say whether, and up to how much at once, a tenant may run beyond its quota."""

    tenant_id: TenantId
    pool_id: PoolId
    mode: OverflowMode
    cap_milli: int = 0

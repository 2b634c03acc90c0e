"""Facts of tenants: who they are, and what they agreed to."""

from collections.abc import Mapping
from dataclasses import dataclass

from domain.consent import OverflowMode
from domain.facts.fact import OfTenant
from domain.ids import PoolId, ReservationId, TenantId
from domain.timespan import Instant


@dataclass(frozen=True, slots=True)
class TenantRegistered(OfTenant):
    """A team may hold quota and reserve."""

    tenant_id: TenantId
    parent_id: TenantId | None
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TenantTagged(OfTenant):
    """A team's tags changed for what it books from now on."""

    tenant_id: TenantId
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TenantClosed(OfTenant):
    """A team books no more."""

    tenant_id: TenantId


@dataclass(frozen=True, slots=True)
class OverflowConsented(OfTenant):
    """A team said whether, and up to how much, it may run beyond its quota at the overflow rate."""

    tenant_id: TenantId
    pool_id: PoolId
    mode: OverflowMode
    cap_milli: int


@dataclass(frozen=True, slots=True)
class NoticeIssued(OfTenant):
    """A team was told of something that is coming to one of its reservations."""

    tenant_id: TenantId
    reservation_id: ReservationId
    kind: str
    deadline: Instant

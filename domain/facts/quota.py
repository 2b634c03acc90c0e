"""Facts of quota: what a tenant may hold in a pool, and when."""

from dataclasses import dataclass

from domain.facts.fact import OfQuota
from domain.ids import GrantId, PoolId, TenantId
from domain.timespan import Instant


@dataclass(frozen=True, slots=True)
class QuotaGranted(OfQuota):
    """A tenant became entitled to an amount of a pool over a span."""

    tenant_id: TenantId
    pool_id: PoolId
    grant_id: GrantId
    nominal_milli: int
    borrow_milli: int
    lend_milli: int
    start: Instant
    end: Instant


@dataclass(frozen=True, slots=True)
class QuotaAmended(OfQuota):
    """A grant changed; what is already booked stays booked."""

    tenant_id: TenantId
    pool_id: PoolId
    grant_id: GrantId
    nominal_milli: int
    borrow_milli: int
    lend_milli: int
    start: Instant
    end: Instant


@dataclass(frozen=True, slots=True)
class QuotaExpired(OfQuota):
    """A grant reached its end."""

    tenant_id: TenantId
    pool_id: PoolId
    grant_id: GrantId

"""Lending: whose idle quota it was that others borrowed.

A borrowed GPU-second is one debit of its borrower and at most one credit of a lender. In each hour (or
part of one) what was borrowed in a pool is lent by the tenants that left quota idle, in proportion to
what each left, within its lending limit, in whole GPU-microseconds. Who borrowed, or lies around or
inside a borrower, lends nothing in that hour.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from domain.facts import quota
from domain.ids import GrantId, PoolId, TenantId
from domain.record import Recorded
from domain.timespan import Instant
from projections.meter import HOUR_MS


@dataclass(frozen=True, slots=True)
class _Version:
    """What a grant says from one instant up to another."""

    start: Instant
    end: Instant
    nominal_milli: int
    lend_milli: int


class Quotas:
    """What tenants were entitled to, and might lend, over time."""

    def __init__(self) -> None:
        """Begin with none."""
        self._grants: dict[tuple[PoolId, TenantId], dict[GrantId, list[_Version]]] = {}

    def apply(self, recorded: Recorded) -> None:
        """Fold one fact."""
        fact = recorded.fact
        if not isinstance(fact, quota.QuotaGranted | quota.QuotaAmended):
            return
        grants = self._grants.setdefault((fact.pool_id, fact.tenant_id), {})
        had = grants.setdefault(fact.grant_id, [])
        start = fact.start
        if had:
            # What a grant said before holds for the time before it was amended.
            start = max(start, recorded.occurred_at)
            last = had.pop()
            until = min(last.end, start)
            had.append(_Version(last.start, until, last.nominal_milli, last.lend_milli))
        had.append(_Version(start, fact.end, fact.nominal_milli, fact.lend_milli))

    def lenders(self, pool_id: PoolId) -> Iterator[TenantId]:
        """The tenants that ever had a lending limit in a pool."""
        for (of_pool, tenant_id), grants in self._grants.items():
            if of_pool == pool_id and any(v.lend_milli for had in grants.values() for v in had):
                yield tenant_id

    def entitled(
        self, pool_id: PoolId, tenant_id: TenantId, start_ms: int, end_ms: int
    ) -> tuple[int, int]:
        """Nominal quota and lending limit over a span, in GPU-microseconds."""
        nominal = lend = 0
        for had in self._grants.get((pool_id, tenant_id), {}).values():
            for version in had:
                since = max(start_ms, version.start // 1000)
                length = max(0, min(end_ms, version.end // 1000) - since)
                nominal += version.nominal_milli * length
                lend += version.lend_milli * length
        return nominal, lend


@dataclass(slots=True)
class Hour:
    """What a pool's borrowers and holders had in an hour, or in a part of one."""

    borrowed: dict[str, int] = field(default_factory=dict)
    """By model."""
    borrowers: set[TenantId] = field(default_factory=set)
    reserved: dict[TenantId, int] = field(default_factory=dict)
    """By tenant, with what lies inside each."""


def lent(
    hours: Mapping[tuple[PoolId, int], Hour],
    quotas: Quotas,
    chain_of: Mapping[TenantId, Sequence[TenantId]],
    cuts_ms: Sequence[int],
) -> Iterator[tuple[PoolId, int, TenantId, str, int]]:
    """Pool, first millisecond, lender, model and GPU-microseconds of all that was lent.

    `chain_of` names a tenant and its ancestors, narrowest first.
    """
    for (pool_id, start_ms), hour in sorted(hours.items()):
        end_ms = _end(start_ms, cuts_ms)
        spare: dict[TenantId, int] = {}
        for tenant_id in sorted(quotas.lenders(pool_id)):
            if _is_kin(tenant_id, hour.borrowers, chain_of):
                continue
            nominal, limit = quotas.entitled(pool_id, tenant_id, start_ms, end_ms)
            idle = min(limit, nominal - hour.reserved.get(tenant_id, 0))
            if idle > 0:
                spare[tenant_id] = idle
        for model, amount in sorted(hour.borrowed.items()):
            for tenant_id, part in shares(min(amount, sum(spare.values())), spare).items():
                if part:
                    spare[tenant_id] -= part
                    yield pool_id, start_ms, tenant_id, model, part


def _end(start_ms: int, cuts_ms: Sequence[int]) -> int:
    """Where a part of an hour ends."""
    end = start_ms - start_ms % HOUR_MS + HOUR_MS
    place = bisect_right(cuts_ms, start_ms)
    return min(end, cuts_ms[place]) if place < len(cuts_ms) else end


def _is_kin(
    tenant_id: TenantId,
    borrowers: Iterable[TenantId],
    chain_of: Mapping[TenantId, Sequence[TenantId]],
) -> bool:
    mine = chain_of[tenant_id]
    return any(tenant_id in chain_of[other] or other in mine for other in borrowers)


def shares(total: int, weights: Mapping[TenantId, int]) -> dict[TenantId, int]:
    """A total in whole parts by weights: the largest remainders get the odd ones, by name among equals.

    No part is above its weight where the total is not above their sum.
    """
    whole = sum(weights.values())
    if not whole:
        return {}
    parts = {name: total * weight // whole for name, weight in weights.items()}
    odd = total - sum(parts.values())
    by_rest = sorted(weights, key=lambda name: (-(total * weights[name] % whole), name))
    for name in by_rest[:odd]:
        parts[name] += 1
    return parts

"""How much of a pool a tenant may still book over a span, which limit binds, and what is set up oddly."""

from collections.abc import Iterator
from dataclasses import dataclass

from domain.ids import PoolId, TenantId
from domain.ledger import Ledger
from domain.quota import Headroom
from domain.sizes import ReservationClass
from domain.timespan import Instant, Timespan
from domain.units import MILLI_PER_GPU


@dataclass(frozen=True, slots=True)
class Usable:
    """What is left for a class: of each tenant from the asker up, and the least of it."""

    klass: ReservationClass
    levels: tuple[Headroom, ...]
    """Of those that have grants, narrowest first; none means that nobody granted anything."""

    @property
    def binding(self) -> Headroom | None:
        """Where the least is left; the narrowest of several."""
        return min(self.levels, key=lambda level: level.left_milli, default=None)

    @property
    def milli(self) -> int:
        """What can be booked as far as quota goes; never negative."""
        return max(0, self.binding.left_milli) if self.binding else 0


def usable(
    ledger: Ledger, tenant_id: TenantId, pool_id: PoolId, span: Timespan, klass: ReservationClass
) -> Usable:
    """What is left of quota over a whole span, by the rules that decide."""
    levels = tuple(
        account.headroom(klass, span)
        for account in ledger.chain(tenant_id, pool_id)
        if account.grants
    )
    return Usable(klass, levels)


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something about grants that somebody should look at; nothing is refused because of it."""

    kind: str
    pool_id: PoolId
    tenant_id: TenantId
    milli: int
    limit_milli: int


def oddities(ledger: Ledger, at: Instant) -> Iterator[Oddity]:
    """What is set up oddly at an instant, by pool and tenant."""
    for pool in ledger.pools.values():
        nominal = _nominal(ledger, pool.id, at)
        for tenant_id, milli in sorted(nominal.items()):
            tenant = ledger.tenants[tenant_id]
            below = sum(
                amount
                for name, amount in nominal.items()
                if ledger.tenants[name].parent_id == tenant_id
            )
            if below > milli:
                yield Oddity("children-exceed-parent", pool.id, tenant_id, below, milli)
            if not tenant.is_open:
                yield Oddity("granted-to-a-closed-tenant", pool.id, tenant_id, milli, 0)
            account = ledger.accounts[tenant_id, pool.id]
            used = account.guaranteed.at(at)
            if used > milli:
                yield Oddity("committed-beyond-grants", pool.id, tenant_id, used, milli)
        tops = {name: m for name, m in nominal.items() if not _is_below(ledger, name, nominal)}
        capacity = sum(ledger.nodes[name].gpus for name in pool.nodes) * MILLI_PER_GPU
        promised = sum(tops.values())
        if promised > capacity:
            for name in sorted(tops):
                yield Oddity("promised-beyond-capacity", pool.id, name, promised, capacity)


def _nominal(ledger: Ledger, pool_id: PoolId, at: Instant) -> dict[TenantId, int]:
    """What each tenant with grants in force is entitled to."""
    found: dict[TenantId, int] = {}
    for (tenant_id, of_pool), account in ledger.accounts.items():
        if of_pool == pool_id and account.grants:
            grants = [g for g in account.grants.values() if g.start <= at < g.end]
            if grants:
                found[tenant_id] = sum(grant.nominal_milli for grant in grants)
    return found


def _is_below(ledger: Ledger, tenant_id: TenantId, granted: dict[TenantId, int]) -> bool:
    """Whether somebody above a tenant has grants, too."""
    above = ledger.tenants[tenant_id].parent_id
    while above is not None:
        if above in granted:
            return True
        above = ledger.tenants[above].parent_id
    return False

"""Terms: everything besides usage that charges depend on, folded from facts."""

from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from domain.facts import billing, tenant
from domain.facts.pool import PoolHoursClosed, PoolOpened
from domain.ids import PoolId, TenantId
from domain.periods import Period, PeriodState
from domain.pricing import PriceVersion, SkuMeter
from domain.record import Recorded
from domain.timespan import FAR_FUTURE, Instant


@dataclass(slots=True)
class TenantLife:
    """A tenant as billing knows it."""

    parent_id: TenantId | None
    since: Instant
    until: Instant = FAR_FUTURE


@dataclass(slots=True)
class Terms:
    """Everything besides usage that charges depend on."""

    books: dict[str, tuple[PriceVersion, ...]] = field(default_factory=dict)
    periods: dict[TenantId, tuple[Period, ...]] = field(default_factory=dict)
    tenants: dict[TenantId, TenantLife] = field(default_factory=dict)
    seals: dict[tuple[TenantId, Instant], billing.PeriodClosed] = field(default_factory=dict)
    seal_seqs: dict[tuple[TenantId, Instant], int] = field(default_factory=dict)
    """Where each seal stands in the log."""
    sites: dict[PoolId, str] = field(default_factory=dict)
    pool_hours: list[PoolHoursClosed] = field(default_factory=list)
    provider_invoices: list[billing.ProviderInvoiceImported] = field(default_factory=list)

    def prices_any_of(self, meters: Container[SkuMeter]) -> bool:
        """Whether any version of any book has a price on one of some meters."""
        return any(
            rate.meter in meters
            for versions in self.books.values()
            for version in versions
            for rate in version.rates
        )

    def account_of(self, tenant_id: TenantId) -> TenantId:
        """The billing account of a tenant: its outermost ancestor."""
        life = self.tenants[tenant_id]
        return tenant_id if life.parent_id is None else self.account_of(life.parent_id)

    def chain(self, tenant_id: TenantId) -> Iterator[TenantId]:
        """A tenant and those that it lies in, narrowest first."""
        name: TenantId | None = tenant_id
        while name is not None:
            yield name
            name = self.tenants[name].parent_id

    def members(self, tenant_id: TenantId, start: Instant, end: Instant) -> tuple[TenantId, ...]:
        """The tenants directly inside one that lived in a span, by name."""
        found = (
            name
            for name, life in self.tenants.items()
            if life.parent_id == tenant_id and life.since < end and start < life.until
        )
        return tuple(sorted(found))

    def apply(self, recorded: Recorded) -> None:
        """Fold one fact."""
        match recorded.fact:
            case billing.PriceBookPublished() as fact:
                version = PriceVersion(
                    fact.book_id,
                    fact.version,
                    fact.currency,
                    fact.start,
                    fact.end,
                    fact.tenant_ids,
                    fact.rates,
                    fact.unused_split,
                    fact.corrects,
                )
                self.books[fact.book_id] = (*self.books.get(fact.book_id, ()), version)
            case billing.PeriodClosing() as fact:
                state = PeriodState.CLOSING
                bounds = (fact.tenant_id, fact.start, fact.end, fact.zone, fact.settlement)
                period = Period(*bounds, state, recorded.seq)
                had = self.periods.get(fact.tenant_id, ())
                self.periods[fact.tenant_id] = (*had, period)
            case billing.PeriodClosed() as fact:
                *before, last = self.periods[fact.tenant_id]
                bounds = (last.tenant_id, last.start, last.end, last.zone, last.settlement)
                closed = Period(*bounds, PeriodState.CLOSED, last.cutoff_seq, fact.row_root)
                self.periods[fact.tenant_id] = (*before, closed)
                self.seals[fact.tenant_id, fact.start] = fact
                self.seal_seqs[fact.tenant_id, fact.start] = recorded.seq
            case tenant.TenantRegistered(tenant_id=name, parent_id=parent):
                self.tenants[name] = TenantLife(parent, recorded.occurred_at)
            case tenant.TenantClosed(tenant_id=name):
                self.tenants[name].until = recorded.occurred_at
            case PoolOpened(pool_id=pool_id, site=site):
                self.sites[pool_id] = site
            case billing.ProviderInvoiceImported() as fact:
                self.provider_invoices.append(fact)
            case PoolHoursClosed() as fact:
                self.pool_hours.append(fact)
            case _:
                pass

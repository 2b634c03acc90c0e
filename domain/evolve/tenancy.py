"""How the facts of tenants and quota change the ledger."""

from domain.evolve.holding import account_of
from domain.facts import quota, tenant
from domain.fleet_state import Tenant
from domain.ledger import Ledger
from domain.quota import Grant
from domain.timers import Due
from domain.timespan import FAR_FUTURE, Instant


def tenant_registered(ledger: Ledger, fact: tenant.TenantRegistered, at: Instant) -> None:
    """A team is known."""
    registered = Tenant(fact.tenant_id, fact.parent_id, fact.tags)
    ledger.undo.put(ledger.tenants, fact.tenant_id, registered)


def tenant_tagged(ledger: Ledger, fact: tenant.TenantTagged, at: Instant) -> None:
    """Other tags hold from now on."""
    ledger.undo.set(ledger.tenants[fact.tenant_id], "tags", fact.tags)


def tenant_closed(ledger: Ledger, fact: tenant.TenantClosed, at: Instant) -> None:
    """A team books no more."""
    ledger.undo.set(ledger.tenants[fact.tenant_id], "is_open", False)  # noqa: FBT003 - a value


def overflow_consented(ledger: Ledger, fact: tenant.OverflowConsented, at: Instant) -> None:
    """A team's word on overflow in a pool."""
    consents = ledger.tenants[fact.tenant_id].consents
    ledger.undo.put(consents, fact.pool_id, (fact.mode, fact.cap_milli))


def quota_set(ledger: Ledger, fact: quota.QuotaGranted | quota.QuotaAmended, at: Instant) -> None:
    """A grant begins, or changes."""
    account = account_of(ledger, fact.tenant_id, fact.pool_id)
    grant = Grant(
        fact.grant_id,
        fact.nominal_milli,
        fact.borrow_milli,
        fact.lend_milli,
        fact.start,
        fact.end,
    )
    ledger.undo.put(account.grants, grant.id, grant)
    ledger.undo.put(ledger.grants, grant.id, (fact.tenant_id, fact.pool_id))
    if grant.end < FAR_FUTURE:
        ledger.timers.set(grant.end, Due.GRANT_END, grant.id)


def quota_expired(ledger: Ledger, fact: quota.QuotaExpired, at: Instant) -> None:
    """A grant is over."""
    account = account_of(ledger, fact.tenant_id, fact.pool_id)
    ledger.undo.drop(account.grants, fact.grant_id)
    ledger.undo.drop(ledger.grants, fact.grant_id)

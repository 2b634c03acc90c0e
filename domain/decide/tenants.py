"""Deciding on tenants, their quota and their consent."""

from domain.commands.tenant import (
    AmendQuota,
    CloseTenant,
    ConsentOverflow,
    GrantQuota,
    RegisterTenant,
    TagTenant,
)
from domain.decide import checks
from domain.decide.transcript import Transcript
from domain.facts.quota import QuotaAmended, QuotaGranted
from domain.facts.tenant import (
    OverflowConsented,
    TenantClosed,
    TenantRegistered,
    TenantTagged,
)
from domain.ids import GrantId, TenantId
from domain.ledger import Ledger
from domain.refusals import Reason, Refusal, refuse
from domain.timespan import Timespan

TENANT_DEPTH_MAX = 8
TENANTS_MAX = 100_000
GRANTS_PER_ACCOUNT_MAX = 1_000


def register_tenant(t: Transcript, command: RegisterTenant) -> Refusal | None:
    """A team of that name is known, inside its parent."""
    refusal = checks.name("tenant_id", command.tenant_id) or checks.text_map("tags", command.tags)
    if refusal:
        return refusal
    if command.tenant_id in t.ledger.tenants:
        return _wrong_state(t.ledger, command.tenant_id, "register")
    if command.parent_id is not None:
        refusal = checks.known_tenant(t.ledger, command.parent_id)
        if refusal:
            return refusal
    depth = _depth(t.ledger, command.parent_id) + 1
    if depth > TENANT_DEPTH_MAX:
        return refuse(Reason.LIMIT, limit="tenant_depth_max", max=TENANT_DEPTH_MAX, asked=depth)
    count = len(t.ledger.tenants) + 1
    if count > TENANTS_MAX:
        return refuse(Reason.LIMIT, limit="tenants_max", max=TENANTS_MAX, asked=count)
    t.write(TenantRegistered(command.tenant_id, command.parent_id, command.tags))
    return None


def _depth(ledger: Ledger, tenant_id: TenantId | None) -> int:
    depth = 0
    while tenant_id is not None:
        depth += 1
        tenant_id = ledger.tenants[tenant_id].parent_id
    return depth


def _wrong_state(ledger: Ledger, tenant_id: TenantId, verb: str) -> Refusal:
    state = "registered" if ledger.tenants[tenant_id].is_open else "closed"
    return refuse(Reason.WRONG_STATE, kind="tenant", id=tenant_id, state=state, verb=verb)


def tag_tenant(t: Transcript, command: TagTenant) -> Refusal | None:
    """Other tags hold for what is booked from now on."""
    refusal = checks.known_tenant(t.ledger, command.tenant_id) or checks.text_map(
        "tags", command.tags
    )
    if refusal:
        return refusal
    if dict(t.ledger.tenants[command.tenant_id].tags) != dict(command.tags):
        t.write(TenantTagged(command.tenant_id, command.tags))
    return None


def close_tenant(t: Transcript, command: CloseTenant) -> Refusal | None:
    """A team books no more; what it has runs on."""
    refusal = checks.known_tenant(t.ledger, command.tenant_id)
    if refusal:
        return refusal
    if not t.ledger.tenants[command.tenant_id].is_open:
        return None
    t.write(TenantClosed(command.tenant_id))
    return None


def grant_quota(t: Transcript, command: GrantQuota) -> Refusal | None:
    """A tenant is entitled to an amount over a span."""
    start = t.second if command.start is None else command.start
    refusal = (
        checks.known_tenant(t.ledger, command.tenant_id)
        or checks.known_pool(t.ledger, command.pool_id)
        or _amounts(command)
        or checks.whole_seconds(Timespan(start, command.end))
    )
    if refusal:
        return refusal
    account = t.ledger.accounts.get((command.tenant_id, command.pool_id))
    count = len(account.grants) + 1 if account else 1
    if count > GRANTS_PER_ACCOUNT_MAX:
        return refuse(
            Reason.LIMIT, limit="grants_per_account_max", max=GRANTS_PER_ACCOUNT_MAX, asked=count
        )
    t.write(
        QuotaGranted(
            command.tenant_id,
            command.pool_id,
            GrantId(t.new_id("grant")),
            command.nominal_milli,
            command.borrow_milli,
            command.lend_milli,
            start,
            command.end,
        )
    )
    return None


def amend_quota(t: Transcript, command: AmendQuota) -> Refusal | None:
    """A grant changes; what is already booked stays booked."""
    where = t.ledger.grants.get(command.grant_id)
    if where is None:
        return refuse(Reason.NOT_FOUND, kind="grant", id=command.grant_id)
    grant = t.ledger.accounts[where].grants[command.grant_id]
    refusal = _amounts(command) or checks.whole_seconds(Timespan(grant.start, command.end))
    if refusal:
        return refusal
    amounts = (command.nominal_milli, command.borrow_milli, command.lend_milli)
    present = (grant.nominal_milli, grant.borrow_milli, grant.lend_milli)
    if present == amounts and grant.end == command.end:
        return None
    t.write(QuotaAmended(*where, command.grant_id, *amounts, grant.start, command.end))
    return None


def _amounts(command: GrantQuota | AmendQuota) -> Refusal | None:
    for field in ("nominal_milli", "borrow_milli", "lend_milli"):
        refusal = checks.between(field, getattr(command, field), 0, checks.MILLI_MAX)
        if refusal:
            return refusal
    return None


def consent_overflow(t: Transcript, command: ConsentOverflow) -> Refusal | None:
    """A tenant's word on running beyond its quota in a pool."""
    refusal = (
        checks.known_tenant(t.ledger, command.tenant_id)
        or checks.known_pool(t.ledger, command.pool_id)
        or checks.between("cap_milli", command.cap_milli, 0, checks.MILLI_MAX)
    )
    if refusal:
        return refusal
    consents = t.ledger.tenants[command.tenant_id].consents
    if consents.get(command.pool_id) != (command.mode, command.cap_milli):
        t.write(
            OverflowConsented(command.tenant_id, command.pool_id, command.mode, command.cap_milli)
        )
    return None

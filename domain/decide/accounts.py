"""Whether a reservation that goes on stays within what its tenant may have."""

from domain.consent import OverflowMode
from domain.decide.transcript import Transcript
from domain.quota import Shortfall
from domain.refusals import Reason, Refusal, refuse
from domain.reservation import Reservation
from domain.sizes import ReservationClass
from domain.timespan import Timespan


def within_account(t: Transcript, found: Reservation, span: Timespan) -> Refusal | None:
    """A further span of a reservation, on the account of its class: quota, or the overflow cap."""
    if found.klass is ReservationClass.OVERFLOW:
        return _within_cap(t, found, span)
    short = _shortfall(t, found, span)
    if short is None:
        return None
    return refuse(
        Reason.QUOTA,
        tenant_id=short.tenant_id,
        limit_milli=short.limit_milli,
        left_milli=short.left_milli,
        asked_milli=found.milli,
        at=short.at,
    )


def _shortfall(t: Transcript, found: Reservation, span: Timespan) -> Shortfall | None:
    """The first account of the chain, narrowest first, that cannot carry it; none at all is a no."""
    accounts = [a for a in t.ledger.chain(found.tenant_id, found.pool_id) if a.grants]
    if not accounts:
        return Shortfall(found.tenant_id, 0, 0, span.start)
    shorts = (account.shortfall(found.klass, span, found.milli) for account in accounts)
    return next((short for short in shorts if short), None)


def _within_cap(t: Transcript, found: Reservation, span: Timespan) -> Refusal | None:
    """Beyond quota the tenant still has to agree, and its cap to hold."""
    tenant = t.ledger.tenants[found.tenant_id]
    mode, cap = tenant.consents.get(found.pool_id, (OverflowMode.NEVER, 0))
    cap = 0 if mode is OverflowMode.NEVER else cap
    account = t.ledger.accounts[found.tenant_id, found.pool_id]
    used, _ = account.overflow.peak(span.start, span.end)
    if used + found.milli <= cap:
        return None
    return refuse(Reason.SPEND_CAP, cap=cap, left=max(0, cap - used), asked=found.milli)

"""Reservations without an end: a term ahead, renewed while it fits, with notice when it does not."""

from domain.commands.reservation import StopRenewing
from domain.decide import checks
from domain.decide.accounts import within_account
from domain.decide.failing import heal, tell_shortage
from domain.decide.placing import Ask, find_units
from domain.decide.reservations import found_of, stays_free, wrong_state
from domain.decide.transcript import Transcript
from domain.facts.reservation import (
    RenewalAgreed,
    RenewalRefused,
    RenewalStopped,
    ReservationRenewed,
)
from domain.facts.tenant import NoticeIssued
from domain.fleet_state import Pool
from domain.ids import ReservationId
from domain.policy import Act
from domain.refusals import Reason, Refusal, refuse
from domain.reservation import Renewal, Reservation
from domain.sizes import parts_of
from domain.states import OVER, RUNNING, UPCOMING
from domain.timespan import Instant, Timespan, seconds
from domain.units import Segment


def agree(t: Transcript, reservation_id: ReservationId, pool: Pool) -> None:
    """Say that a reservation has no end of its own; the terms of today's policy hold for it for good."""
    policy = pool.policy
    terms = (policy.term_seconds, policy.term_notice_seconds, policy.term_retry_seconds)
    t.write(RenewalAgreed(reservation_id, *terms))


def renew(t: Transcript, reservation_id: ReservationId, due: Instant) -> None:
    """The term ends in a while: a further one is committed, or its holder told that it does not fit."""
    found = t.ledger.reservations.get(reservation_id)
    if found is None or found.state not in UPCOMING | RUNNING or found.order_id:
        return
    renewal = found.renewal
    if renewal is None or renewal.due != due:
        return
    end = Instant(due + seconds(renewal.term_seconds))
    segments = _next_term(t, found, end)
    if isinstance(segments, Refusal):
        _refuse(t, found, renewal, segments)
        return
    t.write(ReservationRenewed(found.id, end, segments), at=due)
    tell_shortage(t, found)
    heal(t, t.ledger.pools[found.pool_id])


def _next_term(t: Transcript, found: Reservation, end: Instant) -> tuple[Segment, ...] | Refusal:
    """The units of a further term: those that it has, else others; or why there are none."""
    span = Timespan(found.end, end)
    refusal = (
        checks.known_pool(t.ledger, found.pool_id)
        or checks.not_frozen(t.ledger, found.pool_id, Act.BOOKINGS)
        or _tenant_open(t, found)
        or checks.whole_seconds(span)
        or within_account(t, found, span)
    )
    if refusal:
        return refusal
    pieces = tuple(h.piece for h in found.holdings if h.end == found.end)
    if pieces and stays_free(t, found, pieces, end):
        return (Segment(span.start, span.end, pieces),)
    elsewhere = _elsewhere(t, found, span)
    if elsewhere is not None:
        return elsewhere
    return refuse(Reason.CAPACITY, asked_milli=found.milli, free_milli=0, at=found.end)


def _tenant_open(t: Transcript, found: Reservation) -> Refusal | None:
    if t.ledger.tenants[found.tenant_id].is_open:
        return None
    facts = {"kind": "tenant", "id": found.tenant_id, "state": "closed", "verb": "renew"}
    return Refusal(Reason.WRONG_STATE, facts)


def _elsewhere(t: Transcript, found: Reservation, span: Timespan) -> tuple[Segment, ...] | None:
    """Other units from the end of the term on: a move, which is better than an end."""
    if span.start < t.second:
        return None
    pool = t.ledger.pools[found.pool_id]
    parts = parts_of(found.size, max(1, pool.node_gpus(found.shape.models)))
    return find_units(t, Ask(pool, found.tenant_id, parts, found.shape, span))


def _refuse(t: Transcript, found: Reservation, renewal: Renewal, why: Refusal) -> None:
    """Say why a further term does not fit, when it is tried again, and, once, that the end is near."""
    due = renewal.due
    assert due is not None
    again = Instant(due + seconds(renewal.retry_seconds))
    again_at = again if again < found.end else None
    t.write(RenewalRefused(found.id, why.reason.code, _told(found, why), again_at), at=due)
    if not renewal.refused:
        t.write(NoticeIssued(found.tenant_id, found.id, "term-ends", found.end), at=due)


def _told(found: Reservation, why: Refusal) -> dict[str, str]:
    """The evidence that the holder may read: nothing of others' use, and of no other tenant's name."""
    told = {name: value for name, value in why.facts.items() if name != "free_milli"}
    if told.get("tenant_id") != found.tenant_id:
        told.pop("tenant_id", None)
    return told


def stop_renewing(t: Transcript, command: StopRenewing) -> Refusal | None:
    """An open-ended reservation ends with the term that it has; what has an end already is left."""
    found = found_of(t, command)
    if isinstance(found, Refusal):
        return found
    if found.state in OVER:
        return wrong_state(found, "stop renewing")
    if found.renewal is None:
        return None
    t.write(RenewalStopped(found.id))
    t.write(NoticeIssued(found.tenant_id, found.id, "term-ends", found.end))
    return None

"""How the facts of reservations change the ledger."""

from dataclasses import replace

from domain.evolve.holding import (
    commit,
    count_live,
    cut_short,
    enlist,
    finish,
    step,
    take,
    take_away,
)
from domain.facts import reservation as facts
from domain.ledger import Ledger
from domain.reservation import Renewal, Reservation, holdings_of
from domain.states import ReservationState
from domain.timers import Due
from domain.timespan import MICROSECONDS, Instant, Timespan, seconds
from domain.units import Piece, Segment

Asked = facts.ReservationHeld | facts.ReservationConfirmed | facts.ReservationQueued


def _gap(ledger: Ledger, reservation: Reservation) -> int:
    return seconds(ledger.pools[reservation.pool_id].policy.gap_seconds)


def _admit(ledger: Ledger, fact: Asked, state: ReservationState) -> Reservation:
    """Make the reservation that a fact tells of, or move a queued one on."""
    reservation = ledger.reservations.get(fact.reservation_id)
    if reservation is not None:
        step(ledger, reservation, state)
        return reservation
    reservation = Reservation(
        fact.reservation_id,
        fact.tenant_id,
        fact.pool_id,
        fact.klass,
        fact.size,
        fact.shape,
        fact.milli,
        fact.start,
        fact.end,
        state,
        fact.tags,
    )
    ledger.undo.put(ledger.reservations, reservation.id, reservation)
    enlist(ledger, ledger.pools[fact.pool_id], reservation)
    return reservation


def _bind(ledger: Ledger, fact: facts.ReservationHeld | facts.ReservationConfirmed) -> Reservation:
    state = (
        ReservationState.HELD
        if isinstance(fact, facts.ReservationHeld)
        else ReservationState.CONFIRMED
    )
    reservation = _admit(ledger, fact, state)
    commit(ledger, reservation, fact.start, fact.end, fact.milli)
    count_live(ledger, reservation, fact.milli)
    take(ledger, reservation, holdings_of(fact.segments, _gap(ledger, reservation)))
    return reservation


def held(ledger: Ledger, fact: facts.ReservationHeld, at: Instant) -> None:
    """Units are set aside, and a timer runs."""
    reservation = _bind(ledger, fact)
    ledger.undo.set(reservation, "until", fact.until)
    ledger.timers.set(fact.until, Due.LAPSE, fact.reservation_id)


def confirmed(ledger: Ledger, fact: facts.ReservationConfirmed, at: Instant) -> None:
    """Units are promised; the start and the end are due."""
    reservation = _bind(ledger, fact)
    if reservation.renewal is not None:
        _catch_up(ledger, reservation, reservation.renewal, at)
    ledger.timers.set(fact.start, Due.START, fact.reservation_id)
    ledger.timers.set(fact.end, Due.END, fact.reservation_id)


def hold_confirmed(ledger: Ledger, fact: facts.HoldConfirmed, at: Instant) -> None:
    """A hold's units are promised."""
    reservation = ledger.reservations[fact.reservation_id]
    ledger.undo.set(reservation, "until", None)
    step(ledger, reservation, ReservationState.CONFIRMED)
    ledger.timers.set(reservation.start, Due.START, reservation.id)
    ledger.timers.set(reservation.end, Due.END, reservation.id)
    if reservation.renewal is not None:
        _catch_up(ledger, reservation, reservation.renewal, at)


def queued(ledger: Ledger, fact: facts.ReservationQueued, at: Instant) -> None:
    """A request waits for the planner; at its window's end it expires."""
    reservation = _admit(ledger, fact, ReservationState.QUEUED)
    ledger.undo.set(reservation, "waits_since", at)
    ledger.timers.set(fact.end, Due.END, fact.reservation_id)


def extended(
    ledger: Ledger, fact: facts.ReservationExtended | facts.ReservationRenewed, at: Instant
) -> None:
    """The window ends later, and the former end is no longer due."""
    reservation = ledger.reservations[fact.reservation_id]
    commit(ledger, reservation, reservation.end, fact.end, reservation.milli)
    _ungap(ledger, reservation, {piece for segment in fact.segments for piece in segment.pieces})
    take(ledger, reservation, holdings_of(fact.segments, _gap(ledger, reservation)))
    ledger.undo.set(reservation, "end", fact.end)
    ledger.timers.set(fact.end, Due.END, reservation.id)
    if reservation.renewal is not None:
        due = Instant(fact.end - seconds(reservation.renewal.notice_seconds))
        _renew_at(ledger, reservation, replace(reservation.renewal, due=due, refused=False))


def _ungap(ledger: Ledger, reservation: Reservation, kept_on: set[Piece]) -> None:
    """What goes on behind its former end needs no gap there."""
    gapped = tuple(
        h for h in reservation.holdings if h.gap and h.end == reservation.end and h.piece in kept_on
    )
    if not gapped:
        return
    bare = tuple(type(h)(h.piece, h.start, h.end, 0) for h in gapped)
    ledger.release(reservation, gapped)
    ledger.hold(reservation, bare)
    kept = tuple(h for h in reservation.holdings if h not in gapped)
    ledger.undo.set(reservation, "holdings", kept + bare)


def renewal_agreed(ledger: Ledger, fact: facts.RenewalAgreed, at: Instant) -> None:
    """The window is a term, and its renewal is due before its end."""
    reservation = ledger.reservations[fact.reservation_id]
    due = Instant(reservation.end - seconds(fact.notice_seconds))
    terms = (fact.term_seconds, fact.notice_seconds, fact.retry_seconds)
    _renew_at(ledger, reservation, Renewal(*terms, due))


def renewal_refused(ledger: Ledger, fact: facts.RenewalRefused, at: Instant) -> None:
    """The next try is due, if there is time for one."""
    reservation = ledger.reservations[fact.reservation_id]
    assert reservation.renewal is not None
    renewal = replace(reservation.renewal, due=fact.again_at, refused=True)
    _renew_at(ledger, reservation, renewal)


def renewal_stopped(ledger: Ledger, fact: facts.RenewalStopped, at: Instant) -> None:
    """The window has an end."""
    ledger.undo.set(ledger.reservations[fact.reservation_id], "renewal", None)


def _renew_at(ledger: Ledger, reservation: Reservation, renewal: Renewal) -> None:
    ledger.undo.set(reservation, "renewal", renewal)
    if renewal.due is not None:
        ledger.timers.set(renewal.due, Due.RENEW, reservation.id)


def _catch_up(ledger: Ledger, reservation: Reservation, renewal: Renewal, at: Instant) -> None:
    """A renewal that fell due while nothing was binding is due now, on the second."""
    if renewal.due is not None and renewal.due < at:
        second = Instant(at - at % MICROSECONDS)
        _renew_at(ledger, reservation, replace(renewal, due=second))


def shrunk(ledger: Ledger, fact: facts.ReservationShrunk, at: Instant) -> None:
    """Some pieces are let go from an instant on, and less is counted from then."""
    reservation = ledger.reservations[fact.reservation_id]
    freed = reservation.milli - fact.milli
    commit(ledger, reservation, reservation.start, reservation.end, -freed)
    count_live(ledger, reservation, -freed)
    take_away(ledger, reservation, fact.pieces, Timespan(fact.at, reservation.end))
    ledger.undo.set(reservation, "milli", fact.milli)
    ledger.undo.set(reservation, "size", fact.size)


def started(ledger: Ledger, fact: facts.ReservationStarted, at: Instant) -> None:
    """The window is open."""
    step(ledger, ledger.reservations[fact.reservation_id], ReservationState.ACTIVE)


def at_risk(ledger: Ledger, fact: facts.ReservationAtRisk, at: Instant) -> None:
    """Units are missing ahead of the start."""
    step(ledger, ledger.reservations[fact.reservation_id], ReservationState.AT_RISK)


def degraded(ledger: Ledger, fact: facts.ReservationDegraded, at: Instant) -> None:
    """Units are missing in a running window."""
    step(ledger, ledger.reservations[fact.reservation_id], ReservationState.DEGRADED)


def healed(ledger: Ledger, fact: facts.ReservationHealed, at: Instant) -> None:
    """Nothing is missing any more."""
    reservation = ledger.reservations[fact.reservation_id]
    upcoming = reservation.state is ReservationState.AT_RISK
    step(ledger, reservation, ReservationState.CONFIRMED if upcoming else ReservationState.ACTIVE)


def preempted(ledger: Ledger, fact: facts.ReservationPreempted, at: Instant) -> None:
    """Entitlement ends at an instant that its order names; a running window is leaving."""
    reservation = ledger.reservations[fact.reservation_id]
    ledger.undo.set(reservation, "order_id", fact.order_id)
    cut_short(ledger, reservation, fact.at)
    commit(ledger, reservation, fact.at, reservation.end, -reservation.milli)
    ledger.undo.set(reservation, "end", fact.at)
    if reservation.state in {ReservationState.ACTIVE, ReservationState.DEGRADED}:
        step(ledger, reservation, ReservationState.LEAVING)
    ledger.timers.set(fact.at, Due.GIVE_WAY, reservation.id)


def ended(ledger: Ledger, fact: facts.ReservationEnded, at: Instant) -> None:
    """The one end: all units ahead are free."""
    reservation = ledger.reservations[fact.reservation_id]
    was_bound = reservation.state is not ReservationState.QUEUED
    step(ledger, reservation, ReservationState(fact.state))
    if was_bound:
        finish(ledger, reservation, at)
        _presume_later(ledger, reservation, at)
    else:
        ledger.over.append((at, reservation.id))
        ledger.undo.add(ledger.over.pop)


def _presume_later(ledger: Ledger, reservation: Reservation, at: Instant) -> None:
    if reservation.id in ledger.possessions:
        grace = seconds(ledger.pools[reservation.pool_id].policy.ack_grace_seconds)
        ledger.timers.set(Instant(at + grace), Due.PRESUME, reservation.id)


def units_assigned(ledger: Ledger, fact: facts.UnitsAssigned, at: Instant) -> None:
    """Units are added for further segments."""
    reservation = ledger.reservations[fact.reservation_id]
    take(ledger, reservation, holdings_of(fact.segments, _gap(ledger, reservation)))


def units_reassigned(ledger: Ledger, fact: facts.UnitsReassigned, at: Instant) -> None:
    """A part moves to other units over a span."""
    reservation = ledger.reservations[fact.reservation_id]
    span = Timespan(fact.start, fact.end)
    take_away(ledger, reservation, fact.left, span)
    segment = Segment(fact.start, fact.end, fact.taken)
    take(ledger, reservation, holdings_of((segment,), _gap(ledger, reservation)))


def units_released(ledger: Ledger, fact: facts.UnitsReleased, at: Instant) -> None:
    """Units are lost over a span."""
    reservation = ledger.reservations[fact.reservation_id]
    span = Timespan(fact.start, fact.end)
    take_away(ledger, reservation, fact.pieces, span)
    if reservation.start < fact.start < reservation.end:
        ledger.timers.set(fact.start, Due.RECHECK, reservation.id)
    if fact.end < reservation.end:
        ledger.timers.set(fact.end, Due.RECHECK, reservation.id)

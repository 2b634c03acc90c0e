"""Making way: borrowed units go back to those who are guaranteed them, with notice and a cap."""

from collections.abc import Sequence

from domain.commands.pool import Preempt
from domain.decide import checks
from domain.decide.breaking import trip
from domain.decide.placing import Ask, find_units
from domain.decide.transcript import Transcript
from domain.facts.pool import PreemptionOrdered
from domain.facts.reservation import ReservationEnded, ReservationPreempted
from domain.facts.tenant import NoticeIssued
from domain.ids import OrderId, ReservationId
from domain.policy import Act
from domain.refusals import Reason, Refusal, refuse
from domain.reservation import Reservation
from domain.sealed import Sealed
from domain.states import RUNNING, UPCOMING, ReservationState
from domain.timespan import Instant, seconds
from domain.units import Segment

VICTIMS_TRIED_MAX = 64
"""How many borrowed reservations are tried before an ask goes without."""


def make_way(
    t: Transcript, ask: Ask, for_reservation: ReservationId
) -> tuple[Segment, ...] | Refusal | None:
    """Free units for a guaranteed ask by preempting borrowed ones: the units, or why not.

    Victims are added until the ask fits and then spared one by one where it still fits, so
    that none gives way in vain. More moved than the pool's cap allows is refused.
    """
    policy = ask.pool.policy
    if not policy.preemption or Act.PREEMPT.value in ask.pool.frozen:
        return None
    victims = _choose(t, ask)
    if victims is None:
        return None
    moved = sum(victim.milli for victim in victims)
    if moved > policy.disruption_ratio_max * ask.parts.milli:
        cap = policy.disruption_ratio_max * ask.parts.milli
        return refuse(Reason.DISRUPTION_CAP, cap=cap, needed=moved)
    _order(t, ask, victims, for_reservation, "reclaim")
    return find_units(t, ask)


def preempt(t: Transcript, command: Preempt) -> Refusal | None:
    """An operator's order that some reservations give way, together."""
    refusal = (
        checks.name("reason", command.reason)
        or checks.note("note", command.note)
        or checks.known_pool(t.ledger, command.pool_id)
        or checks.not_frozen(t.ledger, command.pool_id, Act.PREEMPT)
    )
    if refusal:
        return refusal
    victims = []
    for reservation_id in dict.fromkeys(command.victims):
        victim = t.ledger.reservations.get(reservation_id)
        if victim is None or victim.pool_id != command.pool_id:
            return refuse(Reason.NOT_FOUND, kind="reservation", id=reservation_id)
        if victim.state not in UPCOMING | RUNNING or victim.order_id:
            return refuse(
                Reason.WRONG_STATE,
                kind="reservation",
                id=victim.id,
                state=victim.state.value,
                verb="preempt",
            )
        victims.append(victim)
    if not victims:
        return refuse(Reason.MALFORMED, field="victims", problem="name at least one")
    pool = t.ledger.pools[command.pool_id]
    until = Instant(t.second + seconds(pool.policy.grace_seconds))
    _write_order(t, victims, until, None, command.reason, asked_milli=0, note=command.note)
    return None


def _choose(t: Transcript, ask: Ask) -> list[Reservation] | None:
    """The victims that an ask needs, tried out and taken back."""
    mark = t.mark()
    chosen: list[Reservation] = []
    order_id = OrderId(t.new_id("trial"))
    for victim in _candidates(t, ask):
        _give_way(t, victim, max(ask.span.start, victim.start), order_id, "reclaim")
        chosen.append(victim)
        if find_units(t, ask) is not None:
            break
    else:
        t.back_to(mark)
        return None
    t.back_to(mark)
    return _spare(t, ask, chosen, order_id)


def _spare(
    t: Transcript, ask: Ask, chosen: list[Reservation], order_id: OrderId
) -> list[Reservation]:
    """The chosen without those that need not give way."""
    needed = list(chosen)
    for victim in chosen[:-1]:
        fewer = [other for other in needed if other is not victim]
        mark = t.mark()
        for other in fewer:
            _give_way(t, other, max(ask.span.start, other.start), order_id, "reclaim")
        if find_units(t, ask) is not None:
            needed = fewer
        t.back_to(mark)
    return needed


def _candidates(t: Transcript, ask: Ask) -> Sequence[Reservation]:
    """Borrowed reservations in the way, those of one node together, the youngest first."""
    soonest = t.second + seconds(ask.pool.policy.grace_seconds)
    found = [
        reservation
        for reservation in map(t.ledger.reservations.__getitem__, ask.pool.borrowed)
        if reservation.order_id is None
        and reservation.holdings
        and reservation.span.overlaps(ask.reach)
        and (reservation.state in UPCOMING or ask.span.start >= soonest)
        and _has_run(reservation, ask)
    ]
    found.sort(key=lambda r: (min(h.piece for h in r.holdings), -r.start, r.id))
    return found[:VICTIMS_TRIED_MAX]


def _has_run(victim: Reservation, ask: Ask) -> bool:
    """Whether a victim would not run at all, or as long as the pool promises."""
    least = victim.start + seconds(ask.pool.policy.runtime_seconds_min)
    return ask.span.start <= victim.start or ask.span.start >= least


def _order(
    t: Transcript,
    ask: Ask,
    victims: list[Reservation],
    for_reservation: ReservationId,
    reason: str,
) -> None:
    _write_order(t, victims, ask.span.start, for_reservation, reason, asked_milli=ask.parts.milli)


def _write_order(
    t: Transcript,
    victims: list[Reservation],
    until: Instant,
    for_reservation: ReservationId | None,
    reason: str,
    *,
    asked_milli: int,
    note: Sealed | None = None,
) -> None:
    """The order, each victim's notice, and the end of those that lose everything at once."""
    order_id = OrderId(t.new_id("preemption"))
    t.write(
        PreemptionOrdered(
            victims[0].pool_id,
            order_id,
            tuple(victim.id for victim in victims),
            for_reservation,
            reason,
            until,
            asked_milli,
            sum(victim.milli for victim in victims),
            note,
        )
    )
    for victim in victims:
        at = max(until, victim.start)
        t.write(NoticeIssued(victim.tenant_id, victim.id, "preemption", at))
        _give_way(t, victim, at, order_id, reason)
    trip(t, t.ledger.pools[victims[0].pool_id])


def _give_way(
    t: Transcript, victim: Reservation, at: Instant, order_id: OrderId, reason: str
) -> None:
    """One victim's entitlement ends; one that has nothing left, or no time, is over."""
    at = min(at, victim.end)
    t.write(ReservationPreempted(victim.id, order_id, at, reason))
    if at <= victim.start or at <= t.second:
        ended = ReservationEnded(victim.id, ReservationState.PREEMPTED.value, reason)
        t.write(ended, at=t.second)

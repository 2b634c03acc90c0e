"""Asking for a reservation: quota, concrete units, else a place in the queue or a proven no."""

from dataclasses import replace

from domain.commands.reservation import RequestReservation
from domain.consent import OverflowMode
from domain.decide.placing import find_units
from domain.decide.preempting import make_way
from domain.decide.renewing import agree
from domain.decide.requesting import OFFERS_MAX, Request, check
from domain.decide.transcript import Transcript
from domain.facts.environment import EnvironmentRequested
from domain.facts.reservation import ReservationConfirmed, ReservationHeld, ReservationQueued
from domain.ids import ReservationId
from domain.policy import Act
from domain.quota import Shortfall
from domain.refusals import Offer, Reason, Refusal, refuse
from domain.sizes import ReservationClass
from domain.timespan import FAR_FUTURE, Instant, Timespan, seconds
from domain.units import MILLI_PER_GPU, Segment

OFFERS_WITHIN_SECONDS = 30 * 86_400
MOVABLE_LOOKED_AT_MAX = 1_000


def request_reservation(t: Transcript, command: RequestReservation) -> Refusal | None:
    """Book, hold or queue, or say why not."""
    checked = check(t, command)
    if isinstance(checked, Refusal):
        return checked
    refusal = _place(t, checked)
    return replace(refusal, asked=checked.asked) if refusal else None


def _place(t: Transcript, checked: Request) -> Refusal | None:
    """Quota, then concrete units; else a place in the queue, or a proven no."""
    request = _within_quota(t, checked)
    if isinstance(request, Refusal):
        return request
    segments: tuple[Segment, ...] | Refusal | None = find_units(t, request.ask)
    if segments is None and request.klass is ReservationClass.GUARANTEED:
        segments = make_way(t, request.ask, ReservationId(t.new_id("reservation")))
    if isinstance(segments, Refusal):
        return segments
    if segments is not None:
        _book(t, request, segments)
        return None
    if _is_movable(t, request):
        _queue(t, request)
        return None
    return _no_capacity(t, request)


def _within_quota(t: Transcript, request: Request) -> Request | Refusal:
    """The request on the account that can carry it: its class, or overflow by consent."""
    if request.klass is ReservationClass.OVERFLOW:
        return _as_overflow(t, request, None)
    if request.klass is ReservationClass.BORROWED and not request.pool.policy.borrowing:
        grade = request.pool.policy.grade.value
        return refuse(Reason.NOT_ENFORCEABLE, grade=grade, problem="this pool lends nothing")
    short = _shortfall(t, request)
    if short is None:
        return request
    if request.klass is ReservationClass.GUARANTEED:
        return _as_overflow(t, request, short)
    return _over_quota(request, short)


def _shortfall(t: Transcript, request: Request) -> Shortfall | None:
    """The first account of the chain, narrowest first, that cannot carry the request."""
    tenant_id = request.command.tenant_id
    has_grant = False
    for account in t.ledger.chain(tenant_id, request.pool.id):
        if account.grants:
            has_grant = True
            short = account.shortfall(request.klass, request.span, request.parts.milli)
            if short:
                return short
    return None if has_grant else Shortfall(tenant_id, 0, 0, request.span.start)


def _over_quota(request: Request, short: Shortfall) -> Refusal:
    return refuse(
        Reason.QUOTA,
        tenant_id=short.tenant_id,
        limit_milli=short.limit_milli,
        left_milli=short.left_milli,
        asked_milli=request.parts.milli,
        at=short.at,
    )


def _as_overflow(t: Transcript, request: Request, short: Shortfall | None) -> Request | Refusal:
    """Beyond quota, if the tenant agreed to pay for it, up to its cap."""
    tenant = t.ledger.tenants[request.command.tenant_id]
    mode, cap = tenant.consents.get(request.pool.id, (OverflowMode.NEVER, 0))
    asked_for = request.command.overflow or request.klass is ReservationClass.OVERFLOW
    if mode is OverflowMode.NEVER or (mode is OverflowMode.ASK and not asked_for):
        return _over_quota(request, short or Shortfall(tenant.id, 0, 0, request.span.start))
    account = t.ledger.accounts.get((tenant.id, request.pool.id))
    used = account.overflow.peak(request.span.start, request.span.end)[0] if account else 0
    if used + request.parts.milli > cap:
        left = cap - used
        return refuse(Reason.SPEND_CAP, cap=cap, left=left, asked=request.parts.milli)
    return replace(request, klass=ReservationClass.OVERFLOW)


def _book(t: Transcript, request: Request, segments: tuple[Segment, ...]) -> None:
    """Write the booking with its units, held or binding."""
    command = request.command
    reservation_id = ReservationId(t.new_id("reservation"))
    asked = (
        reservation_id,
        command.tenant_id,
        command.pool_id,
        request.klass,
        command.size,
        command.shape,
        request.parts.milli,
        request.span.start,
        request.span.end,
        segments,
        command.tags,
    )
    quote = t.ledger.quote(command.tenant_id, request.span.start)
    if command.hold_seconds is None:
        t.write(ReservationConfirmed(*asked, quote))
    else:
        until = min(t.second + seconds(command.hold_seconds), request.span.end)
        t.write(ReservationHeld(*asked, until=Instant(until), quote=quote))
    _add_on(t, request, reservation_id)


def _add_on(t: Transcript, request: Request, reservation_id: ReservationId) -> None:
    """What goes with a reservation beside its units."""
    if request.command.until_released:
        agree(t, reservation_id, request.pool)
    if request.command.environment is not None:
        t.write(EnvironmentRequested(reservation_id, request.command.environment))


def _is_movable(t: Transcript, request: Request) -> bool:
    """Whether a plan could make room: something overlaps that has not started and may move.

    Moving frees nothing in sum, so where too few GPUs are free at an instant no plan helps.
    Holds and shares want an answer at once and never wait for a plan.
    """
    frozen = Act.PLAN.value in request.pool.frozen
    if frozen or request.command.hold_seconds is not None or request.parts.share_milli:
        return False
    _, free_gpus = t.placer.tightest(request.span, pool=request.pool.number, models=())
    if free_gpus * MILLI_PER_GPU < request.parts.milli:
        return False
    for seen, reservation_id in enumerate(request.pool.upcoming):
        other = t.ledger.reservations[reservation_id]
        if other.start > t.now and other.span.overlaps(request.span):
            return True
        if seen > MOVABLE_LOOKED_AT_MAX:
            return True
    return False


def _queue(t: Transcript, request: Request) -> None:
    command = request.command
    reservation_id = ReservationId(t.new_id("reservation"))
    t.write(
        ReservationQueued(
            reservation_id,
            command.tenant_id,
            command.pool_id,
            request.klass,
            command.size,
            command.shape,
            request.parts.milli,
            request.span.start,
            request.span.end,
            command.tags,
            Reason.CAPACITY.code,
        )
    )
    _add_on(t, request, reservation_id)


def _no_capacity(t: Transcript, request: Request) -> Refusal:
    """The proven no: where it is tightest, and the nearest windows that would fit."""
    level = request.command.shape.same_level
    if level:
        anywhere = replace(request.ask, shape=replace(request.command.shape, same_level=None))
        if find_units(t, anywhere) is not None:
            problem = "it fits, but not in one group"
            refusal = refuse(Reason.TOPOLOGY, level=level, problem=problem)
            return replace(refusal, offers=_offers(t, request))
    at, free_gpus = t.placer.tightest(
        request.span, pool=request.pool.number, models=request.command.shape.models
    )
    refusal = refuse(
        Reason.CAPACITY,
        asked_milli=request.parts.milli,
        free_milli=free_gpus * MILLI_PER_GPU,
        at=at,
    )
    return replace(refusal, offers=_offers(t, request))


def _offers(t: Transcript, request: Request) -> tuple[Offer, ...]:
    """The earliest windows that would fit, by units and by quota."""
    limit = min(request.command.offers_max, OFFERS_MAX)
    if limit <= 0 or request.command.shape.same_level or request.command.shape.labels:
        return ()
    duration = request.span.microseconds
    gap = seconds(request.pool.policy.gap_seconds)
    latest = min(FAR_FUTURE, request.span.start + seconds(OFFERS_WITHIN_SECONDS))
    starts = t.placer.earliest(
        request.parts,
        duration + gap,
        Timespan(request.span.start, Instant(latest)),
        pool=request.pool.number,
        owner=request.command.tenant_id,
        models=request.command.shape.models,
        limit=limit,
    )
    offers = (Offer(start, Instant(start + duration)) for start in starts)
    return tuple(
        offer
        for offer in offers
        if not _shortfall(t, replace(request, span=Timespan(offer.start, offer.end)))
    )

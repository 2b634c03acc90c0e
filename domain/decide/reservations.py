"""Deciding on reservations that exist: confirm, extend, shrink, give back, cancel."""

from itertools import pairwise

from domain.commands.reservation import (
    CancelReservation,
    ConfirmHold,
    ExtendReservation,
    GiveBack,
    ShrinkReservation,
    StopRenewing,
)
from domain.decide import checks
from domain.decide.accounts import within_account
from domain.decide.failing import heal, tell_shortage
from domain.decide.nodes import settle_drain
from domain.decide.placing import fits_with
from domain.decide.transcript import Transcript
from domain.facts.reservation import (
    HoldConfirmed,
    OverflowEnded,
    ReservationCancelled,
    ReservationEnded,
    ReservationExtended,
    ReservationGivenBack,
    ReservationShrunk,
    UnitsReleased,
)
from domain.policy import Act
from domain.refusals import Reason, Refusal, refuse
from domain.reservation import Reservation
from domain.sizes import ReservationClass, Size, parts_of
from domain.states import RUNNING, UPCOMING, ReservationState
from domain.timespan import Instant, Timespan, seconds
from domain.units import MILLI_PER_GPU, Piece, Segment

Altering = (
    ConfirmHold
    | ExtendReservation
    | ShrinkReservation
    | StopRenewing
    | GiveBack
    | CancelReservation
)


def found_of(t: Transcript, command: Altering) -> Reservation | Refusal:
    """The reservation that is meant, as the caller last saw it."""
    reservation = t.ledger.reservations.get(command.reservation_id)
    if reservation is None:
        return refuse(Reason.NOT_FOUND, kind="reservation", id=command.reservation_id)
    stale = checks.version(command.expected_version, reservation.intent_version)
    return stale or reservation


def wrong_state(reservation: Reservation, verb: str) -> Refusal:
    """A reservation whose state does not allow a verb."""
    state = reservation.state.value
    return refuse(Reason.WRONG_STATE, kind="reservation", id=reservation.id, state=state, verb=verb)


def confirm_hold(t: Transcript, command: ConfirmHold) -> Refusal | None:
    """A hold becomes binding, unless it has lapsed."""
    found = found_of(t, command)
    if isinstance(found, Refusal):
        return found
    if found.state in UPCOMING:
        return None
    if found.state is not ReservationState.HELD:
        return wrong_state(found, "confirm")
    refusal = checks.not_frozen(t.ledger, found.pool_id, Act.BOOKINGS)
    if refusal:
        return refusal
    t.write(HoldConfirmed(found.id))
    return None


def extend_reservation(t: Transcript, command: ExtendReservation) -> Refusal | None:
    """A reservation ends later on the units that it has, if they are free and quota allows."""
    found = found_of(t, command)
    if isinstance(found, Refusal):
        return found
    if found.state not in (UPCOMING | RUNNING) - {ReservationState.LEAVING} or found.order_id:
        return wrong_state(found, "extend")
    refusal = checks.not_frozen(t.ledger, found.pool_id, Act.BOOKINGS) or _longer(
        t, found, command.end
    )
    if refusal:
        return refusal
    pieces = tuple(h.piece for h in found.holdings if h.end == found.end)
    short = _extension_blocked(t, found, pieces, command.end)
    if short:
        return short
    segment = Segment(found.end, command.end, pieces)
    t.write(ReservationExtended(found.id, command.end, (segment,)))
    tell_shortage(t, found)
    return None


def _longer(t: Transcript, found: Reservation, end: Instant) -> Refusal | None:
    """The new end makes a longer window that the pool's policy and the quota allow."""
    policy = t.ledger.pools[found.pool_id].policy
    span = Timespan(found.end, end)
    if end <= found.end:
        problem = "an extension ends after the present end"
        return refuse(Reason.WINDOW_INVALID, problem=problem)
    refusal = checks.whole_seconds(span)
    if refusal:
        return refusal
    if end - found.start > seconds(policy.window_seconds_max):
        problem = f"a window lasts at most {policy.window_seconds_max} seconds"
        return refuse(Reason.WINDOW_INVALID, problem=problem)
    if end > t.second + seconds(policy.horizon_seconds):
        problem = f"the window ends beyond the horizon of {policy.horizon_seconds} seconds"
        return refuse(Reason.WINDOW_INVALID, problem=problem)
    return within_account(t, found, span)


def _extension_blocked(
    t: Transcript, found: Reservation, pieces: tuple[Piece, ...], end: Instant
) -> Refusal | None:
    """Someone else holds one of the units in the time that is asked for."""
    if stays_free(t, found, pieces, end):
        return None
    return refuse(Reason.CAPACITY, asked_milli=found.milli, free_milli=0, at=found.end)


def stays_free(t: Transcript, found: Reservation, pieces: tuple[Piece, ...], end: Instant) -> bool:
    """Whether units that a reservation has at its end are nobody else's up to a later one."""
    gap = seconds(t.ledger.pools[found.pool_id].policy.gap_seconds)
    reach = Timespan(Instant(found.end + gap), Instant(end + gap))
    return all(
        t.ledger.nodes[piece.node_id].is_bookable and fits_with(t, piece, reach) for piece in pieces
    )


def shrink_reservation(t: Transcript, command: ShrinkReservation) -> Refusal | None:
    """A reservation asks for less from now on; the last of its units are let go first."""
    found = found_of(t, command)
    if isinstance(found, Refusal):
        return found
    if found.state not in UPCOMING | RUNNING or found.order_id:
        return wrong_state(found, "shrink")
    pool = t.ledger.pools[found.pool_id]
    keep = parts_of(command.keep, max(1, pool.node_gpus(found.shape.models)))
    now = max(t.second, found.start)
    freed = found.milli - keep.milli
    refusal = _less(found, command.keep, keep.milli)
    if refusal:
        return refusal
    surplus = found.held_milli(now) - keep.milli
    pieces = _last(found, now, min(freed, max(0, surplus)))
    if pieces is None:
        problem = "what stays must be whole nodes, or whole GPUs, of what there is"
        return refuse(Reason.SIZE_INVALID, problem=problem)
    t.write(ReservationShrunk(found.id, now, command.keep, keep.milli, pieces))
    if not _shrink_later(t, found, now):
        problem = "what stays must be whole nodes, or whole GPUs, after its later moves as well"
        return refuse(Reason.SIZE_INVALID, problem=problem)
    heal(t, pool)
    return None


def _shrink_later(t: Transcript, found: Reservation, now: Instant) -> bool:
    """Let go of what is too much in later stretches, whose units are others than those of now."""
    edges = {edge for h in found.holdings for edge in (h.start, h.end)}
    later = sorted(edge for edge in edges if now < edge < found.end)
    for start, end in pairwise((*later, found.end)):
        surplus = found.held_milli(start) - found.milli
        if surplus <= 0:
            continue
        pieces = _last(found, start, surplus)
        if pieces is None:
            return False
        t.write(UnitsReleased(found.id, start, end, pieces, "shrink"))
    return True


def _less(found: Reservation, keep: Size, milli: int) -> Refusal | None:
    if min(keep.gpus, keep.nodes, keep.share_milli) < 0 or milli <= 0:
        return refuse(Reason.SIZE_INVALID, problem="what stays is more than nothing")
    if bool(keep.share_milli) != bool(found.size.share_milli):
        return refuse(Reason.SIZE_INVALID, problem="a share stays a share, GPUs stay GPUs")
    if milli >= found.milli:
        return refuse(Reason.SIZE_INVALID, problem="what stays is less than what there is")
    return None


def _last(found: Reservation, at: Instant, milli: int) -> tuple[Piece, ...] | None:
    """The units that are let go: from the smallest part on, the highest GPUs first."""
    current = [h.piece for h in found.holdings if h.start <= at < h.end]
    by_node: dict[str, list[Piece]] = {}
    for piece in current:
        by_node.setdefault(piece.node_id, []).append(piece)
    order = sorted(
        by_node.values(),
        key=lambda pieces: (sum(p.width_milli for p in pieces), pieces[0].node_id),
    )
    gone: list[Piece] = []
    for pieces in order:
        for piece in sorted(pieces, reverse=True):
            taken = min(milli, piece.width_milli)
            if taken:
                first = piece.end_milli - taken
                gone.append(Piece(piece.node_id, first, taken))
                milli -= taken
    whole = all(piece.width_milli % MILLI_PER_GPU == 0 for piece in gone)
    return tuple(gone) if not milli and (whole or found.size.share_milli) else None


def give_back(t: Transcript, command: GiveBack) -> Refusal | None:
    """A running reservation ends now."""
    found = found_of(t, command)
    if isinstance(found, Refusal):
        return found
    if found.state is ReservationState.GIVEN_BACK:
        return None
    if found.state not in RUNNING:
        return wrong_state(found, "give back")
    t.write(ReservationGivenBack(found.id))
    end_reservation(t, found, ReservationState.GIVEN_BACK, "tenant", t.second)
    return None


def cancel_reservation(t: Transcript, command: CancelReservation) -> Refusal | None:
    """A reservation that has not started is called off."""
    found = found_of(t, command)
    if isinstance(found, Refusal):
        return found
    if found.state is ReservationState.CANCELLED:
        return None
    if found.state not in UPCOMING | {ReservationState.HELD, ReservationState.QUEUED}:
        return wrong_state(found, "cancel")
    t.write(ReservationCancelled(found.id))
    end_reservation(t, found, ReservationState.CANCELLED, "tenant", t.second)
    return None


def end_reservation(
    t: Transcript, found: Reservation, state: ReservationState, reason: str, at: Instant
) -> None:
    """The one end of a reservation, and what follows for those who wait for its units."""
    was_running = found.state in RUNNING
    nodes = sorted({holding.piece.node_id for holding in found.holdings})
    at = max(min(at, found.end), min(found.start, at))
    if found.klass is ReservationClass.OVERFLOW and was_running:
        t.write(OverflowEnded(found.id, found.milli, state.value), at=at)
    t.write(ReservationEnded(found.id, state.value, reason), at=at)
    for node_id in nodes:
        settle_drain(t, t.ledger.nodes[node_id])
    heal(t, t.ledger.pools[found.pool_id])

"""Deciding on a plan: it is checked again, whole, and adopted or refused, never in part."""

from domain.commands.report import PlannedMove, ProposePlan
from domain.decide import checks
from domain.decide.placing import fits_with
from domain.decide.transcript import Transcript
from domain.facts.plan import PlanAdopted, PlanProposed, PlanRefused
from domain.facts.reservation import (
    QueuedRefused,
    ReservationConfirmed,
    ReservationEnded,
    UnitsAssigned,
    UnitsReleased,
)
from domain.policy import Act
from domain.refusals import Refusal
from domain.reservation import Reservation
from domain.sizes import parts_of
from domain.states import UPCOMING, ReservationState
from domain.timespan import Timespan, seconds
from domain.units import MILLI_PER_GPU, Segment


def propose_plan(t: Transcript, command: ProposePlan) -> Refusal | None:
    """Adopt a plan if every move and admission of it still holds, else refuse all of it."""
    refusal = checks.known_pool(t.ledger, command.pool_id) or checks.not_frozen(
        t.ledger, command.pool_id, Act.PLAN
    )
    if refusal:
        return refusal
    t.write(
        PlanProposed(
            command.plan_id,
            command.pool_id,
            command.from_seq,
            len(command.moves),
            tuple(admission.reservation_id for admission in command.admissions),
            tuple(refused.reservation_id for refused in command.refusals),
            command.evidence,
        )
    )
    mark = t.mark()
    why = _carry_out(t, command)
    if why is None:
        t.write(PlanAdopted(command.plan_id, command.pool_id))
    else:
        t.back_to(mark)
        t.write(PlanRefused(command.plan_id, command.pool_id, why))
    return None


def _carry_out(t: Transcript, command: ProposePlan) -> str | None:
    """Do what a plan says; the first thing that does not hold is the reason to undo it all."""
    for move in command.moves:
        why = _lift(t, move)
        if why:
            return why
    for move in command.moves:
        reservation = t.ledger.reservations[move.reservation_id]
        why = _misfit(t, reservation, move.segments)
        if why:
            return why
        t.write(UnitsAssigned(reservation.id, move.segments, "plan", command.from_seq))
    for admission in command.admissions:
        why = _admit(t, admission)
        if why:
            return why
    for refused in command.refusals:
        waiting = t.ledger.reservations.get(refused.reservation_id)
        if waiting is None or waiting.state is not ReservationState.QUEUED:
            return f"{refused.reservation_id} does not wait any more"
        t.write(QueuedRefused(waiting.id, refused.reason, refused.evidence))
        t.write(ReservationEnded(waiting.id, ReservationState.REFUSED.value, refused.reason))
    return None


def _lift(t: Transcript, move: PlannedMove) -> str | None:
    """Take a reservation off its units, if it may still be moved."""
    reservation = t.ledger.reservations.get(move.reservation_id)
    if reservation is None or reservation.state not in UPCOMING or reservation.start <= t.now:
        return f"{move.reservation_id} may not be moved any more"
    pieces = tuple(dict.fromkeys(holding.piece for holding in reservation.holdings))
    t.write(UnitsReleased(reservation.id, reservation.start, reservation.end, pieces, "plan"))
    return None


def _admit(t: Transcript, admission: PlannedMove) -> str | None:
    """Give a waiting request the units that a plan found for it."""
    waiting = t.ledger.reservations.get(admission.reservation_id)
    if waiting is None or waiting.state is not ReservationState.QUEUED:
        return f"{admission.reservation_id} does not wait any more"
    if waiting.start < t.second:
        return f"the window of {waiting.id} has begun"
    for account in t.ledger.chain(waiting.tenant_id, waiting.pool_id):
        if account.grants and account.shortfall(waiting.klass, waiting.span, waiting.milli):
            return f"quota does not allow {waiting.id} any more"
    why = _misfit(t, waiting, admission.segments)
    if why:
        return why
    t.write(
        ReservationConfirmed(
            waiting.id,
            waiting.tenant_id,
            waiting.pool_id,
            waiting.klass,
            waiting.size,
            waiting.shape,
            waiting.milli,
            waiting.start,
            waiting.end,
            admission.segments,
            waiting.tags,
            t.ledger.quote(waiting.tenant_id, waiting.start),
        )
    )
    return None


def _misfit(t: Transcript, reservation: Reservation, segments: tuple[Segment, ...]) -> str | None:
    """Why segments are not what a reservation asks for, on free units; None when they are."""
    pool = t.ledger.pools[reservation.pool_id]
    gap = seconds(pool.policy.gap_seconds)
    at = reservation.start
    for segment in segments:
        if segment.start != at or segment.milli != reservation.milli:
            return f"{reservation.id} would have a hole"
        at = segment.end
        why = _wrong_units(t, reservation, segment)
        if why:
            return why
        reach = Timespan(segment.start, type(segment.end)(segment.end + gap))
        if not all(fits_with(t, piece, reach) for piece in segment.pieces):
            return f"units for {reservation.id} are held by another"
    return None if at == reservation.end else f"{reservation.id} would end early"


def _wrong_units(t: Transcript, reservation: Reservation, segment: Segment) -> str | None:
    """Why units are not of the kind that is asked for; None when they are."""
    pool = t.ledger.pools[reservation.pool_id]
    shape = reservation.shape
    per_node: dict[str, int] = {}
    groups: set[str | None] = set()
    for piece in segment.pieces:
        node = t.ledger.nodes.get(piece.node_id)
        if node is None or node.pool_id != pool.id or not node.is_bookable:
            return f"{piece.node_id} takes no holder"
        if node.failed_slots.intersection(piece.slots):
            return f"{piece.node_id} has failed units"
        if shape.models and node.model not in shape.models:
            return f"{piece.node_id} is of another model"
        if not shape.labels.items() <= node.labels.items():
            return f"{piece.node_id} has other labels"
        per_node[piece.node_id] = per_node.get(piece.node_id, 0) + piece.width_milli
        if shape.same_level:
            groups.add(node.group(shape.same_level))
    if len(groups) > 1:
        return f"{reservation.id} would be spread over {shape.same_level}s"
    parts = parts_of(reservation.size, pool.node_gpus(shape.models))
    wanted = [parts.node_gpus * MILLI_PER_GPU] * parts.nodes
    wanted += [size for size in (parts.gpus * MILLI_PER_GPU, parts.share_milli) if size]
    if sorted(per_node.values()) != sorted(wanted):
        return f"{reservation.id} would be cut otherwise than asked"
    return None

"""When units are lost: only what failed moves, what cannot move is short, and shortage heals."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from domain.decide.placing import Ask, find_units
from domain.decide.transcript import Transcript
from domain.facts.reservation import (
    ReservationAtRisk,
    ReservationDegraded,
    ReservationHealed,
    UnitsAssigned,
    UnitsReassigned,
    UnitsReleased,
)
from domain.fleet_state import Node, Pool
from domain.policy import Act
from domain.reservation import Reservation
from domain.sizes import Parts, parts_of
from domain.states import RUNNING, UPCOMING, ReservationState
from domain.timespan import Instant, Timespan
from domain.units import MILLI_PER_GPU, Piece, width

HEALED_MAX = 256
"""How many short reservations are looked at after units came free."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Units of a node that a holder may not keep over a span, and why."""

    node: Node
    slots: frozenset[int]
    span: Timespan
    cause: str
    waits: bool = False
    """Whether holders keep what they have while repair is frozen: a failure, not a plan."""


def lose(t: Transcript, loss: Loss, *, only: frozenset[ReservationState] | None = None) -> None:
    """Move or release what the holders of a node lose; every other part of them stays."""
    if loss.waits and Act.REPAIR.value in t.ledger.pools[loss.node.pool_id].frozen:
        return
    for reservation_id in sorted(loss.node.holders):
        reservation = t.ledger.reservations.get(reservation_id)
        if reservation is None or (only is not None and reservation.state not in only):
            continue
        for span, part in _parts_on(reservation, loss):
            _move_or_release(t, reservation, loss, span, part)
        tell_shortage(t, reservation)


def _parts_on(reservation: Reservation, loss: Loss) -> list[tuple[Timespan, tuple[Piece, ...]]]:
    """What a reservation has on a node and loses, by the spans over which it loses it."""
    by_span: dict[Timespan, list[Piece]] = {}
    for holding in reservation.holdings:
        span = Timespan(holding.start, holding.end) & loss.span
        if holding.piece.node_id == loss.node.id and not span.is_empty:
            by_span.setdefault(span, []).append(holding.piece)
    return [
        (span, tuple(sorted(pieces)))
        for span, pieces in sorted(by_span.items())
        if any(loss.slots.intersection(piece.slots) for piece in pieces)
    ]


def _move_or_release(
    t: Transcript, reservation: Reservation, loss: Loss, span: Timespan, part: tuple[Piece, ...]
) -> None:
    pool = t.ledger.pools[reservation.pool_id]
    taken = None
    if Act.REPAIR.value not in pool.frozen:
        taken = _replacement(t, reservation, loss, span, part)
    if taken is not None:
        t.write(UnitsReassigned(reservation.id, span.start, span.end, part, taken, loss.cause, 0))
        return
    lost = tuple(failed for piece in part for failed in _failed(piece, loss.slots))
    t.write(UnitsReleased(reservation.id, span.start, span.end, lost, loss.cause))


def _failed(piece: Piece, slots: frozenset[int]) -> Iterable[Piece]:
    """Those runs of a piece that lie on failed GPUs."""
    for slot in piece.slots:
        if slot in slots:
            first = max(piece.first_milli, slot * MILLI_PER_GPU)
            end = min(piece.end_milli, (slot + 1) * MILLI_PER_GPU)
            yield Piece(piece.node_id, first, end - first)


def _replacement(
    t: Transcript, reservation: Reservation, loss: Loss, span: Timespan, part: tuple[Piece, ...]
) -> tuple[Piece, ...] | None:
    """Units elsewhere, like those that a part loses, over the same span."""
    milli = width(part)
    gpus, share = divmod(milli, MILLI_PER_GPU)
    whole = milli == loss.node.gpus * MILLI_PER_GPU and reservation.size.gpus < gpus
    parts = Parts(
        nodes=1 if whole else 0,
        node_gpus=loss.node.gpus,
        gpus=0 if whole else gpus,
        share_milli=share,
    )
    if gpus and share:
        return None
    ask = Ask(
        t.ledger.pools[reservation.pool_id],
        reservation.tenant_id,
        parts,
        replace(reservation.shape, same_level=None),
        span,
        without=(loss.node.index, *_indexes(t, reservation, span, but=loss.node)),
        among=_same_group(t, reservation, loss.node),
    )
    segments = find_units(t, ask)
    if segments is None or len(segments) != 1:
        return None
    return segments[0].pieces


def _indexes(
    t: Transcript, reservation: Reservation, span: Timespan, *, but: Node
) -> tuple[int, ...]:
    """The other nodes that a reservation sits on over a span."""
    nodes = {
        holding.piece.node_id
        for holding in reservation.holdings
        if Timespan(holding.start, holding.end).overlaps(span)
    }
    return tuple(sorted(t.ledger.nodes[node_id].index for node_id in nodes - {but.id}))


def _same_group(t: Transcript, reservation: Reservation, node: Node) -> tuple[int, ...] | None:
    """Where a part may go, when all parts must sit in one group of a level."""
    level = reservation.shape.same_level
    if level is None:
        return None
    pool = t.ledger.pools[reservation.pool_id]
    nodes = (t.ledger.nodes[node_id] for node_id in pool.nodes)
    return tuple(other.index for other in nodes if other.group(level) == node.group(level))


def tell_shortage(t: Transcript, reservation: Reservation) -> None:
    """Say what a reservation lacks now, or will lack, if it lacks anything."""
    if reservation.state in UPCOMING:
        span = reservation.first_shortage(t.second)
        if span is not None:
            t.write(ReservationAtRisk(reservation.id, reservation.short_milli(span.start)))
    elif reservation.state in {ReservationState.ACTIVE, ReservationState.DEGRADED}:
        short = reservation.short_milli(t.second)
        if short > 0 and t.second < reservation.end:
            t.write(ReservationDegraded(reservation.id, short))


def heal(t: Transcript, pool: Pool) -> None:
    """Give short reservations what came free, oldest first, a named number at a time."""
    if not pool.short or Act.REPAIR.value in pool.frozen:
        return
    waiting = sorted(pool.short, key=lambda r: (t.ledger.reservations[r].start, r))
    for reservation_id in waiting[:HEALED_MAX]:
        reservation = t.ledger.reservations[reservation_id]
        if reservation.state in RUNNING | UPCOMING and reservation.order_id is None:
            _heal(t, pool, reservation)


def _heal(t: Transcript, pool: Pool, reservation: Reservation) -> None:
    """Fill each span of shortage as far as it can be filled."""
    before = reservation.short_milli(t.second)
    after = t.second
    while (span := reservation.first_shortage(after)) is not None:
        for ask in _missing(t, pool, reservation, span):
            segments = find_units(t, ask)
            if segments is not None:
                t.write(UnitsAssigned(reservation.id, segments, "heal", 0))
        after = span.end
        if after >= reservation.end:
            break
    if reservation.first_shortage(t.second) is None:
        t.write(ReservationHealed(reservation.id))
    elif reservation.short_milli(t.second) != before:
        tell_shortage(t, reservation)


def _missing(t: Transcript, pool: Pool, reservation: Reservation, span: Timespan) -> list[Ask]:
    """What would make a reservation whole over a span: parts to complete, and whole parts."""
    parts = parts_of(reservation.size, pool.node_gpus(reservation.shape.models))
    wanted = [parts.node_gpus * MILLI_PER_GPU] * parts.nodes
    wanted += [size for size in (parts.gpus * MILLI_PER_GPU, parts.share_milli) if size]
    have: dict[int, int] = {}
    for holding in reservation.holdings:
        if holding.start <= span.start < holding.end:
            index = t.ledger.nodes[holding.piece.node_id].index
            have[index] = have.get(index, 0) + holding.piece.width_milli
    asks: list[Ask] = []
    base = Ask(pool, reservation.tenant_id, parts, reservation.shape, span)
    for index, milli in sorted(have.items(), key=lambda item: (-item[1], item[0])):
        fitting = min((size for size in wanted if size >= milli), default=None)
        if fitting is None:
            continue
        wanted.remove(fitting)
        lacking = (fitting - milli) // MILLI_PER_GPU
        if lacking:
            asks.append(replace(base, parts=Parts(0, 1, lacking, 0), among=(index,)))
    taken = tuple(have)
    return asks + [replace(base, parts=_part(parts, size), without=taken) for size in wanted]


def _part(parts: Parts, size: int) -> Parts:
    """One part of a size, to be found by itself."""
    if size < MILLI_PER_GPU:
        return Parts(0, parts.node_gpus, 0, size)
    if size == parts.node_gpus * MILLI_PER_GPU and parts.nodes:
        return Parts(1, parts.node_gpus, 0, 0)
    return Parts(0, parts.node_gpus, size // MILLI_PER_GPU, 0)


def all_slots(node: Node) -> frozenset[int]:
    """Every GPU of a node."""
    return frozenset(range(node.gpus))


def from_now(t: Transcript, end: Instant) -> Timespan:
    """From the present second on."""
    return Timespan(t.second, end)

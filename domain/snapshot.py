"""What a planner sees: one pool at one position of the log, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from domain.fairness import queue_of
from domain.fleet_state import Pool
from domain.ids import NodeId, PoolId, ReservationId, TenantId
from domain.ledger import Ledger
from domain.reservation import Reservation
from domain.sizes import Parts, ReservationClass, Shape, parts_of
from domain.timespan import Instant, seconds
from domain.units import Piece


@dataclass(frozen=True, slots=True)
class PlanNode:
    """A node that takes holders. `open_slots` are its GPUs that serve."""

    id: NodeId
    gpus: int
    model: str
    labels: Mapping[str, str]
    levels: tuple[tuple[str, str], ...]
    open_slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlanHold:
    """Units that stay where they are; `end` is when they can be booked again."""

    piece: Piece
    start: Instant
    end: Instant


@dataclass(frozen=True, slots=True)
class PlanAsk:
    """A reservation that may be placed: a waiting one, or one that may move from where it is."""

    id: ReservationId
    tenant_id: TenantId
    parts: Parts
    shape: Shape
    start: Instant
    end: Instant
    at: tuple[Piece, ...] = ()
    """Where it is now; empty while it waits."""
    klass: ReservationClass = ReservationClass.GUARANTEED
    place: int = 0
    """Of one that waits, how many came before it."""


@dataclass(frozen=True, slots=True)
class PlanProblem:
    """Everything that a plan for one pool depends on."""

    pool_id: PoolId
    from_seq: int
    gap: int
    nodes: tuple[PlanNode, ...]
    fixed: tuple[PlanHold, ...]
    movable: tuple[PlanAsk, ...]
    waiting: tuple[PlanAsk, ...]


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """Where everything goes: moved ones, admitted ones, and what fits in no way."""

    moves: dict[ReservationId, tuple[Piece, ...]] = field(default_factory=dict)
    admitted: dict[ReservationId, tuple[Piece, ...]] = field(default_factory=dict)
    refused: tuple[ReservationId, ...] = ()
    is_proven: bool = False
    """Whether the refusals are proven, or only not found in time."""
    evidence: dict[str, str] = field(default_factory=dict)


def problem_of(ledger: Ledger, pool_id: PoolId, from_seq: int, now: Instant) -> PlanProblem:
    """The problem of a pool's waiting requests: what may move is what overlaps one of them.

    Shares, holds, gangs bound to one group, what is short of units, and what has started stay where
    they are.
    """
    pool = ledger.pools[pool_id]
    waiting = _waiting(ledger, pool, now)
    movable: list[PlanAsk] = []
    fixed: list[PlanHold] = []
    for reservation in sorted(ledger.reservations.values(), key=lambda r: r.id):
        if reservation.pool_id != pool_id or not reservation.holdings:
            continue
        ask = _ask(ledger, reservation)
        may_move = reservation.id in pool.upcoming and _may_move(reservation, now)
        if may_move and _may_stay(ledger, reservation) and _meets(ask, waiting):
            movable.append(ask)
        else:
            fixed += [PlanHold(h.piece, h.start, h.clear) for h in reservation.holdings]
    for planned in ledger.maintenances.values():
        if planned.pool_id == pool_id:
            fixed += [PlanHold(h.piece, h.start, h.clear) for h in planned.holdings]
    nodes = tuple(
        PlanNode(
            node.id,
            node.gpus,
            node.model,
            node.labels,
            node.levels,
            tuple(slot for slot in range(node.gpus) if slot not in node.failed_slots),
        )
        for node in (ledger.nodes[node_id] for node_id in pool.nodes)
        if node.is_bookable
    )
    gap = seconds(pool.policy.gap_seconds)
    return PlanProblem(pool_id, from_seq, gap, nodes, tuple(fixed), tuple(movable), waiting)


def _waiting(ledger: Ledger, pool: Pool, now: Instant) -> tuple[PlanAsk, ...]:
    """Who waits in a pool, by id, each with its place in the queue."""
    queue = queue_of(ledger, pool, now)
    asks = (replace(_ask(ledger, each.reservation), place=each.place) for each in queue)
    return tuple(sorted(asks, key=lambda ask: ask.id))


def _ask(ledger: Ledger, reservation: Reservation) -> PlanAsk:
    pool = ledger.pools[reservation.pool_id]
    parts = parts_of(reservation.size, max(1, pool.node_gpus(reservation.shape.models)))
    return PlanAsk(
        reservation.id,
        reservation.tenant_id,
        parts,
        reservation.shape,
        reservation.start,
        reservation.end,
        tuple(sorted(h.piece for h in reservation.holdings)),
        reservation.klass,
    )


def _may_move(reservation: Reservation, now: Instant) -> bool:
    """Not started, short of nothing, on one segment, and free to sit anywhere."""
    one_segment = all(
        h.start == reservation.start and h.end == reservation.end for h in reservation.holdings
    )
    plain = not reservation.size.share_milli and reservation.shape.same_level is None
    complete = reservation.held_milli(reservation.start) == reservation.milli
    waits = reservation.start > now and reservation.order_id is None
    return one_segment and complete and plain and waits


def _may_stay(ledger: Ledger, reservation: Reservation) -> bool:
    """Whether it could be booked anew where it sits: else it is left alone.

    Its node may be cordoned or have failed, and it may have another gap than the pool asks for now,
    one before a maintenance say.
    """
    gap = seconds(ledger.pools[reservation.pool_id].policy.gap_seconds)
    for holding in reservation.holdings:
        if holding.gap != gap:
            return False
        node = ledger.nodes[holding.piece.node_id]
        if not node.is_bookable or node.failed_slots.intersection(holding.piece.slots):
            return False
    return True


def _meets(ask: PlanAsk, waiting: tuple[PlanAsk, ...]) -> bool:
    return any(ask.start < other.end and other.start < ask.end for other in waiting)

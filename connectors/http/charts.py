"""From a ledger to the lines and bars of a Gantt chart."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from domain.facts import Fact
from domain.facts.reservation import UnitsReassigned, UnitsReleased
from domain.fleet_state import Node, Pool
from domain.ids import NodeId, ReservationId
from domain.ledger import Ledger
from domain.reservation import Holding
from domain.states import OVER
from domain.timespan import FAR_FUTURE, Instant, Timespan, seconds
from domain.units import MILLI_PER_GPU
from projections.gantt import Bar, Down, Gantt, Line, clock_ticks
from schemas.json_form import instant_text
from solvers.supposing import Supposed

SHOWN_SECONDS_MAX = 7 * 86_400
"""Of what is supposed, unless more is asked for."""


def lines_of(ledger: Ledger, pool: Pool) -> tuple[Line, ...]:
    """The nodes of a pool, by group of the narrowest level and name."""
    nodes = [ledger.nodes[node_id] for node_id in pool.nodes]
    told = [Line(n.id, n.gpus, n.levels[-1][1] if n.levels else "") for n in nodes]
    return tuple(sorted(told, key=lambda line: (line.group, line.node_id)))


def bars_of(ledger: Ledger, pool: Pool, span: Timespan) -> Iterator[Bar]:
    """What is held of a pool in a span."""
    for reservation in sorted(ledger.reservations.values(), key=lambda r: r.id):
        if reservation.pool_id == pool.id and reservation.state not in OVER:
            state = f"{reservation.klass.value} {reservation.state.value}"
            for holding in reservation.holdings:
                if holding.start < span.end and span.start < holding.end:
                    yield _bar(holding, reservation.tenant_id, reservation.id, state)


def _bar(holding: Holding, tenant: str, name: str, state: str, *, is_new: bool = False) -> Bar:
    piece = holding.piece
    place = (piece.node_id, piece.first_milli, piece.width_milli)
    return Bar(*place, holding.start, holding.end, tenant, name, state, is_new)


def downs_of(
    ledger: Ledger, pool: Pool, now: Instant, lost: Iterable[NodeId] = ()
) -> Iterator[Down]:
    """Planned maintenance, nodes that take nobody, GPUs that failed, and what is supposed lost."""
    for planned in ledger.maintenances.values():
        if planned.pool_id == pool.id:
            node = ledger.nodes[planned.node_id]
            yield _whole(node, planned.start, planned.end, "maintenance")
    gone = set(lost)
    for node in (ledger.nodes[node_id] for node_id in pool.nodes):
        if node.id in gone:
            yield _whole(node, now, FAR_FUTURE, "supposed lost")
        elif not node.is_bookable:
            yield _whole(node, now, FAR_FUTURE, node.state.value)
        for slot in node.failed_slots:
            first = slot * MILLI_PER_GPU
            yield Down(node.id, first, MILLI_PER_GPU, now, FAR_FUTURE, f"GPU {slot} failed")


def _whole(node: Node, start: Instant, end: Instant, why: str) -> Down:
    return Down(node.id, 0, node.gpus * MILLI_PER_GPU, start, end, why)


def was_of(facts: Iterable[Fact], tenants: Mapping[ReservationId, str]) -> Iterator[Bar]:
    """Where the moved ones were: what a plan, a failure or a maintenance took them off."""
    for fact in facts:
        match fact:
            case UnitsReassigned(reservation_id, start, end, left, _, cause):
                pieces = left
            case UnitsReleased(reservation_id, start, end, pieces, "plan" as cause):
                pass
            case _:
                continue
        if reservation_id in tenants:
            for piece in pieces:
                holding = Holding(piece, start, end, 0)
                yield _bar(holding, tenants[reservation_id], reservation_id, f"left for {cause}")


def plan_chart(
    ledger: Ledger, pool: Pool, span: Timespan, now: Instant, moves: Sequence[Fact]
) -> Gantt:
    """A pool's plan over a span, with the facts that moved somebody in it."""
    bars = tuple(bars_of(ledger, pool, span))
    taken = {
        (fact.reservation_id, piece.node_id, piece.first_milli)
        for fact in moves
        if isinstance(fact, UnitsReassigned)
        for piece in fact.taken
    }
    bars = tuple(
        replace(bar, is_new=True) if (bar.name, bar.node_id, bar.first_milli) in taken else bar
        for bar in bars
    )
    was = was_of(moves, {ReservationId(bar.name): bar.tenant for bar in bars})
    return Gantt(
        f"Plan of pool {pool.id}",
        span.start,
        span.end,
        clock_ticks(span.start, span.end),
        lines_of(ledger, pool),
        bars,
        tuple(downs_of(ledger, pool, now)),
        tuple(was),
        now,
    )


def supposed_chart(
    ledger: Ledger, pool: Pool, span: Timespan, found: Supposed, lost: Iterable[NodeId], at: Instant
) -> Gantt:
    """A pool's plan as it would be: where everyone would sit, and where the moved ones sit now.

    The span reaches to the last end of what would be otherwise, up to a week.
    """
    gone = tuple(lost)
    ends = [s.end for d in found.differences for s in (d.before, d.after) if s is not None]
    furthest = min(max([span.end, *ends]), span.start + seconds(SHOWN_SECONDS_MAX))
    span = Timespan(span.start, Instant(max(span.end, furthest)))
    changed = {each.reservation_id: each for each in found.differences}
    bars = [bar for bar in bars_of(ledger, pool, span) if bar.name not in changed]
    was: list[Bar] = []
    for name, each in sorted(changed.items()):
        if each.after is not None:
            state = f"{each.after.klass} {each.after.state}"
            had = {h.piece for h in each.before.holdings} if each.before is not None else set()
            bars += [
                _bar(h, each.after.tenant_id, name, state, is_new=h.piece not in had)
                for h in each.after.holdings
            ]
        kept = set(each.after.holdings) if each.after is not None else set()
        if each.before is not None:
            left = (h for h in each.before.holdings if h not in kept)
            was += [_bar(h, each.before.tenant_id, name, "now") for h in left]
    notes = [f"as supposed on the plan at position {found.seq}"]
    notes += [f"lost: {', '.join(gone)}"] if gone else []
    return Gantt(
        f"What if, pool {pool.id}",
        span.start,
        span.end,
        clock_ticks(span.start, span.end),
        lines_of(ledger, pool),
        tuple(bars),
        tuple(downs_of(ledger, pool, at, gone)),
        tuple(was),
        at,
        tuple(notes),
    )


def as_json(gantt: Gantt) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "from": instant_text(gantt.start),
        "to": instant_text(gantt.end),
        "nodes": [{"node_id": n.node_id, "gpus": n.gpus, "group": n.group} for n in gantt.lines],
        "held": [_bar_json(bar) for bar in gantt.bars],
        "moved_from": [_bar_json(bar) for bar in gantt.was],
        "down": [
            {
                "node_id": down.node_id,
                "first_milli": down.first_milli,
                "width_milli": down.width_milli,
                "start": instant_text(down.start),
                "end": instant_text(down.end),
                "why": down.why,
            }
            for down in gantt.downs
        ],
    }


def _bar_json(bar: Bar) -> dict[str, Any]:
    return {
        "node_id": bar.node_id,
        "first_milli": bar.first_milli,
        "width_milli": bar.width_milli,
        "start": instant_text(bar.start),
        "end": instant_text(bar.end),
        "tenant_id": bar.tenant,
        "reservation_id": bar.name,
        "state": bar.state,
    }

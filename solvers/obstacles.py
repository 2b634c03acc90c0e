"""Who is in the way of a want: on each node what holds it, and the nodes that the least holds.

The cheapest nodes are chosen one by one, by how much of the wanted span others hold there; that
what was found is enough is then tried on a copy, not believed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from domain.decide.transcript import Transcript
from domain.fleet_state import Maintenance, Node
from domain.ids import ReservationId, TenantId
from domain.reservation import Reservation
from domain.timespan import Instant
from domain.units import MILLI_PER_GPU
from solvers.trial import Want, fits, lift

MAINTENANCE = "maintenance"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Someone who holds, on one node, what is wanted; `klass` is maintenance for a planned one."""

    holder_id: str
    tenant_id: TenantId | None
    klass: str
    state: str
    node_id: str
    milli: int
    start: Instant
    end: Instant


@dataclass(frozen=True, slots=True)
class Cost:
    """What of a node would have to be cleared: GPUs, who is on them, and how much they hold."""

    node: Node
    slots: tuple[int, ...]
    holders: frozenset[ReservationId]
    held: int
    """Milli-GPU times microseconds inside the wanted span."""


def suits(node: Node, want: Want) -> bool:
    """Whether a node is of the right kind, whoever holds it."""
    shape = want.shape
    right_model = not shape.models or node.model in shape.models
    return right_model and shape.labels.items() <= node.labels.items()


def obstacles(t: Transcript, want: Want) -> tuple[tuple[Obstacle, ...], bool]:
    """A few whose leaving would make room, fewest held first; and whether that is enough.

    Nothing where no node suits at all. The transcript is left as it was.
    """
    chosen = _cheapest(t, want)
    found = tuple(
        sorted(
            (each for cost in chosen for each in _told(t, cost, want)), key=lambda o: o.holder_id
        )
    )
    mark = t.mark()
    for holder_id in sorted({ReservationId(each.holder_id) for each in found}):
        lift(t, _holder(t, holder_id))
    enough = bool(chosen) and fits(t, want)
    t.back_to(mark)
    return found, enough


def _holder(t: Transcript, holder_id: ReservationId) -> Reservation | Maintenance:
    found = t.ledger.reservations.get(holder_id)
    if found is not None:
        return found
    return next(m for m in t.ledger.maintenances.values() if m.holder_id == holder_id)


def _cheapest(t: Transcript, want: Want) -> list[Cost]:
    """The nodes that the least holds; where a level is named, of the group that is cheapest."""
    nodes = [t.ledger.nodes[node_id] for node_id in want.pool.nodes]
    nodes = [node for node in nodes if node.is_bookable and suits(node, want)]
    level = want.shape.same_level
    if level is None:
        return _in_group(nodes, want)
    groups = sorted({group for node in nodes if (group := node.group(level)) is not None})
    options = [_in_group([n for n in nodes if n.group(level) == group], want) for group in groups]
    return min((o for o in options if o), key=lambda o: sum(c.held for c in o), default=[])


def _in_group(nodes: list[Node], want: Want) -> list[Cost]:
    parts = want.ask.parts
    chosen: list[Cost] = []
    if parts.nodes:
        whole = [
            _cost(node, tuple(range(node.gpus)), want)
            for node in nodes
            if node.gpus == parts.node_gpus and not node.failed_slots
        ]
        chosen = sorted(whole, key=lambda c: (c.held, c.node.id))[: parts.nodes]
        if len(chosen) < parts.nodes:
            return []
    wanted = parts.gpus + (1 if parts.share_milli else 0)
    if wanted:
        taken = {cost.node.id for cost in chosen}
        rest = [_some_slots(node, wanted, want) for node in nodes if node.id not in taken]
        best = min((c for c in rest if c), key=lambda c: (c.held, c.node.id), default=None)
        if best is None:
            return []
        chosen.append(best)
    return chosen


def _some_slots(node: Node, wanted: int, want: Want) -> Cost | None:
    """The GPUs of a node that the least holds, as many as are wanted."""
    open_slots = [slot for slot in range(node.gpus) if slot not in node.failed_slots]
    if len(open_slots) < wanted:
        return None
    by_cost = sorted(open_slots, key=lambda slot: (_cost(node, (slot,), want).held, slot))
    return _cost(node, tuple(sorted(by_cost[:wanted])), want)


def _cost(node: Node, slots: tuple[int, ...], want: Want) -> Cost:
    held, holders = 0, set()
    for first, end, start, until, holder in _held(node, slots, want):
        span = min(until, want.ask.reach.end) - max(start, want.ask.reach.start)
        held += (end - first) * span
        holders.add(holder)
    return Cost(node, slots, frozenset(holders), held)


def _held(
    node: Node, slots: Iterable[int], want: Want
) -> Iterator[tuple[int, int, Instant, Instant, ReservationId]]:
    """What is held of some GPUs of a node inside the wanted span, a GPU at a time."""
    reach = want.ask.reach
    for slot in slots:
        low, high = slot * MILLI_PER_GPU, (slot + 1) * MILLI_PER_GPU
        for first, end, start, until, holder in node.lanes.held(low, high, reach.start, reach.end):
            yield max(first, low), min(end, high), start, until, holder


def _told(t: Transcript, cost: Cost, want: Want) -> Iterator[Obstacle]:
    for holder_id in sorted(cost.holders):
        mine = [each for each in _held(cost.node, cost.slots, want) if each[4] == holder_id]
        at = min(start for _, _, start, _, _ in mine)
        milli = sum(end - first for first, end, start, _, _ in mine if start == at)
        until = max(each[3] for each in mine)
        holder = t.ledger.reservations.get(holder_id)
        if holder is None:
            kind, state, tenant = MAINTENANCE, "planned", None
        else:
            kind, state, tenant = holder.klass.value, holder.state.value, holder.tenant_id
        yield Obstacle(holder_id, tenant, kind, state, cost.node.id, milli, at, until)

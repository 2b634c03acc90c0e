"""Prices of GPUs at instants, by min-cost flow along the timeline.

Fixed windows on one kind of GPU make an interval matrix, so the relaxation that counts GPUs is a
flow: an instant is a node of the network, a reservation an arc from its start to its end. The
duals are the prices. Where models, quotas or flexible windows break that form, the flow works on
a relaxation of it; whatever prices come out, the certificate that they make is valid.
"""

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from ortools.graph.python import min_cost_flow

from solvers.planning.certificate import (
    COST_MAX,
    SCALE_MAX,
    Certificate,
    Prices,
    bound_of,
    can_be_placed,
)
from solvers.planning.columns import Columns
from solvers.planning.profiles import Ints

ROUNDS_FLEXIBLE = 3
"""Flows with better and better starts of flexible windows."""
RELAXATIONS_MAX = 2_000_000_000
"""Most arcs looked at while duals are worked out."""
UNITS_MAX = 1 << 58
INSTANTS_MAX = 3072
"""Instants of one flow; of more starts, evenly spread ones stand for all."""


@dataclass(frozen=True, slots=True)
class Guide:
    """What the flow tells the sweep, and what it proves."""

    certificate: Certificate
    bound: int
    share: np.ndarray[tuple[int], np.dtype[np.float64]]
    """How much of each reservation the flow admits, 0 to 1."""
    starts: Ints
    """The cheapest start of each."""


def guide_of(columns: Columns) -> Guide:
    """The best guide that a few flows find; equal columns give equal guides."""
    asks = columns.asks
    starts = asks.release.copy()
    is_flexible = bool((asks.latest > asks.release).any())
    best: Guide | None = None
    for _ in range(ROUNDS_FLEXIBLE if is_flexible else 1):
        for with_quotas in (False, True) if len(columns.quota) else (False,):
            found = _guide(columns, starts, with_quotas=with_quotas)
            if best is None or found.bound < best.bound:
                best = found
        assert best is not None
        starts = best.starts
    assert best is not None
    return best


def _guide(columns: Columns, starts: Ints, *, with_quotas: bool) -> Guide:
    wanted = can_be_placed(columns)
    scale = _scale(columns, wanted)
    size = np.maximum(columns.room, 1)
    unit = columns.value * scale // size
    share = wanted.astype(np.float64)
    quotas: dict[str, tuple[tuple[int, int], ...]] = {}
    if with_quotas:
        for at, limit in enumerate(columns.quota.tolist()):
            row = at + len(columns.fleet.gpus)
            chosen = np.flatnonzero(wanted & (columns.asks.quota_row == row))
            if not len(chosen):
                continue
            instants = _some(np.unique(starts[chosen]))
            line, part = _flow(
                columns, chosen, starts, unit, instants, np.full(len(instants), limit)
            )
            tenant = columns.instance.asks[chosen[0]].tenant
            quotas[tenant] = _points(instants, line)
            share[chosen] = np.minimum(share[chosen], part)
            unit[chosen] -= _paid(columns, chosen, starts, instants, line)
    models: dict[str, tuple[tuple[int, int], ...]] = {}
    cheapest = starts.copy()
    for names, chosen in _components(columns, wanted & (unit > 0)):
        instants, capacity = _capacity(columns, names, starts[chosen])
        line, part = _flow(columns, chosen, starts, unit, instants, capacity)
        share[chosen] = np.minimum(share[chosen], part)
        points = _points(instants, line)
        models |= dict.fromkeys(names, points)
        cheapest[chosen] = _cheapest_starts(columns, chosen, instants, line)
    share[unit <= 0] = 0
    certificate = Certificate(scale, models, quotas)
    return Guide(certificate, bound_of(columns, certificate), share, cheapest)


def _scale(columns: Columns, wanted: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int:
    """A scale at which values divide by sizes, where one is small enough."""
    size, value = np.maximum(columns.room[wanted], 1), columns.value[wanted]
    if not len(size):
        return 1
    scale = 1
    for part in np.unique(size // np.gcd(size, value)).tolist():
        scale = math.lcm(scale, int(part))
        if scale > SCALE_MAX:
            scale = 1000
            break
    most = int((value // size).max()) + 1
    return max(1, min(scale, UNITS_MAX // (most * (2 * len(size) + 2))))


def _components(
    columns: Columns, wanted: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> list[tuple[list[str], Ints]]:
    """Models that some reservation could take instead of one another, and who wants those."""
    above: dict[str, str] = {node.model: node.model for node in columns.instance.nodes}

    def top(name: str) -> str:
        while above[name] != name:
            name = above[name]
        return name

    of_kind: dict[int, str] = {}
    for kind, allowed in enumerate(columns.fleet.allowed):
        names = sorted({columns.instance.nodes[n].model for n in np.flatnonzero(allowed)})
        if not names or not (wanted & (columns.asks.kind == kind)).any():
            continue
        of_kind[kind] = names[0]
        for name in names[1:]:
            above[top(name)] = top(names[0])
    groups: dict[str, list[str]] = {}
    for name in sorted(above):
        groups.setdefault(top(name), []).append(name)
    found = []
    for root, names in sorted(groups.items()):
        kinds = [kind for kind, first in of_kind.items() if top(first) == root]
        chosen = np.flatnonzero(wanted & np.isin(columns.asks.kind, kinds))
        if len(chosen):
            found.append((names, chosen))
    return found


def _capacity(columns: Columns, names: list[str], starts: Ints) -> tuple[Ints, Ints]:
    """The instants that matter, and the GPUs that are up at each."""
    mine = {n for n, node in enumerate(columns.instance.nodes) if node.model in names}
    down: dict[int, list[tuple[int, int]]] = {}
    for node, start, end in columns.down:
        if node in mine:
            down.setdefault(node, []).append((start, end))
    edges = [start for spans in down.values() for start, _ in spans]
    instants = _some(np.unique(np.concatenate([starts, np.array(edges, np.int64)])))
    up = np.full(len(instants), sum(int(columns.fleet.gpus[n]) for n in mine), np.int64)
    for node, spans in down.items():
        is_down = np.zeros(len(instants), np.bool_)
        for start, end in spans:
            is_down |= (instants >= start) & (instants < end)
        up -= is_down * int(columns.fleet.gpus[node])
    return instants, up


def _some(instants: Ints) -> Ints:
    """At most INSTANTS_MAX of them, the first and the last among those."""
    if len(instants) <= INSTANTS_MAX:
        return instants
    kept: Ints = instants[np.linspace(0, len(instants) - 1, INSTANTS_MAX).astype(np.int64)]
    return kept


def _flow(
    columns: Columns, chosen: Ints, starts: Ints, unit: Ints, instants: Ints, capacity: Ints
) -> tuple[Ints, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Prices at the instants, and the share of each chosen one that the flow admits.

    Whoever runs at none of the instants is admitted without a word.
    """
    count = len(instants)
    ends = starts + columns.asks.duration
    share = np.ones(len(chosen))
    meets = np.flatnonzero(
        np.searchsorted(instants, starts[chosen]) < np.searchsorted(instants, ends[chosen])
    )
    chosen = chosen[meets]
    first = np.searchsorted(instants, starts[chosen])
    end = np.searchsorted(instants, ends[chosen])
    size, gain = np.maximum(columns.room[chosen], 1), unit[chosen]
    along = np.arange(count)
    most = int(capacity.max(initial=0))
    network = min_cost_flow.SimpleMinCostFlow()
    network.add_arcs_with_capacity_and_unit_cost(
        along, along + 1, np.full(count, most), np.zeros(count, np.int64)
    )
    arcs = network.add_arcs_with_capacity_and_unit_cost(first, end, size, -gain)
    supply = np.diff(capacity, prepend=0, append=0)
    network.set_nodes_supplies(np.arange(count + 1), supply)
    status = network.solve()
    if status != network.OPTIMAL:
        return np.zeros(count, np.int64), share
    flow = network.flows(arcs)
    taken = np.zeros(count + 1, np.int64)
    np.add.at(taken, first, flow)
    np.add.at(taken, end, -flow)
    idle = capacity - np.cumsum(taken)[:-1]
    open_, used, slack = flow < size, flow > 0, idle > 0
    tail = np.concatenate([along, first[open_], end[used], along[slack] + 1])
    head = np.concatenate([along + 1, end[open_], first[used], along[slack]])
    none = np.zeros(count, np.int64)
    cost = np.concatenate([none, -gain[open_], gain[used], none[slack]])
    potential = np.zeros(count + 1, np.int64)
    _settle(tail, head, cost, potential, RELAXATIONS_MAX // len(tail))
    share[meets] = flow / size
    return np.maximum(0, potential[:-1] - potential[1:]), share


@njit(cache=True)
def _settle(tail, head, cost, potential, passes):  # type: ignore[no-untyped-def]
    """Bellman-Ford: lower potentials along the residual arcs until none can be lowered."""
    for _ in range(passes):
        changed = False
        for i in range(tail.shape[0]):
            offered = potential[tail[i]] + cost[i]
            if offered < potential[head[i]]:
                potential[head[i]] = offered
                changed = True
        if not changed:
            return


def _points(instants: Ints, line: Ints) -> tuple[tuple[int, int], ...]:
    priced = np.flatnonzero(line)
    if sum(line.tolist()) > COST_MAX:
        return ()
    return tuple(zip(instants[priced].tolist(), line[priced].tolist(), strict=True))


def _paid(columns: Columns, chosen: Ints, starts: Ints, instants: Ints, line: Ints) -> Ints:
    total = np.concatenate([[0], np.cumsum(line)])
    begin = starts[chosen]
    end = np.searchsorted(instants, begin + columns.asks.duration[chosen])
    found: Ints = total[end] - total[np.searchsorted(instants, begin)]
    return found


def _cheapest_starts(columns: Columns, chosen: Ints, instants: Ints, line: Ints) -> Ints:
    """For each chosen one the earliest of its cheapest starts."""
    asks = columns.asks
    total = np.concatenate([[0], np.cumsum(line)])
    found = asks.release[chosen].copy()
    for at in np.flatnonzero(asks.latest[chosen] > asks.release[chosen]).tolist():
        r = chosen[at]
        low, high, length = (int(a[r]) for a in (asks.release, asks.latest, asks.duration))
        inside = instants[np.searchsorted(instants, low) : np.searchsorted(instants, high)] + 1
        starts = np.concatenate([[low], inside])
        paid = total[np.searchsorted(instants, starts + length)]
        paid = paid - total[np.searchsorted(instants, starts)]
        found[at] = starts[int(paid.argmin())]
    return found


__all__ = ["Guide", "Prices", "guide_of"]

"""A bound on every plan that anyone can check by adding up, without a solver (weak duality).

A certificate names prices of GPUs at instants. Whatever runs at an instant must fit into what is
up at that instant, so for any prices of 0 or more no plan is worth more than

    sum over instants of capacity x price
    + sum over reservations of max(0, value - the cheapest that its GPUs can cost in its window),

the same with quotas, whose prices a tenant pays on top. Where everybody lies in one of equal racks,
whoever leaves too little of a rack for anybody else pays for all of it. Which reservations can be placed at all
is told by counting: no node, or no rack, is large enough even when the whole fleet is empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from solvers.planning.columns import Columns
from solvers.planning.profiles import Ints

SCALE_MAX = 1_000_000
COST_MAX = 1 << 61
"""Sums of prices stay below this, so that 64 bits hold them."""

Prices = Mapping[str, tuple[tuple[int, int], ...]]
"""For each model, or tenant: (instant, price of a GPU in 1/scale of a value), by instant."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """Prices: whoever has the instance can work out the bound that they prove."""

    scale: int
    models: Prices = field(default_factory=dict)
    quotas: Prices = field(default_factory=dict)


def can_be_placed(columns: Columns) -> NDArray[np.bool_]:
    """Which reservations would fit into the empty fleet, by counting nodes and racks."""
    asks, fleet, gpus = columns.asks, columns.fleet, columns.fleet.gpus
    found = (asks.latest >= asks.release) & (asks.nodes <= len(gpus))
    quota = dict(enumerate(columns.quota.tolist(), start=len(gpus)))
    most = np.zeros(len(fleet.allowed), np.int64)
    count, in_rack = most.copy(), most.copy()
    for kind, allowed in enumerate(fleet.allowed):
        most[kind] = gpus[allowed].max(initial=0)
        count[kind] = allowed.sum()
        per_rack = np.bincount(fleet.rack[allowed]) if allowed.any() else np.zeros(1, np.int64)
        in_rack[kind] = per_rack.max(initial=0)
    found &= (asks.nodes == 0) | (asks.nodes <= count[asks.kind])
    found &= (asks.one_rack == 0) | (asks.nodes <= in_rack[asks.kind])
    found &= asks.gpus <= most[asks.kind]
    limit = np.array([quota.get(row, 1 << 60) for row in asks.quota_row.tolist()], np.int64)
    return found & (columns.size <= limit)


def bound_of(columns: Columns, certificate: Certificate) -> int:
    """The most that any plan of the instance is worth, by these prices.

    Raises ValueError where a certificate is none: a price below 0, or instants out of order.
    """
    scale = certificate.scale
    if not 1 <= scale <= SCALE_MAX:
        raise ValueError(f"the scale of a certificate is 1 to {SCALE_MAX}")
    models = {node.model for node in columns.instance.nodes}
    lines = {name: _line(certificate.models.get(name, ())) for name in sorted(models)}
    capacity = sum(_worth(columns, name, *line) for name, line in lines.items())
    asks, wanted = columns.asks, can_be_placed(columns)
    cost = np.full(len(asks.gpus), COST_MAX, np.int64)
    for kind, allowed in enumerate(columns.fleet.allowed):
        chosen = np.flatnonzero((asks.kind == kind) & wanted)
        at = np.flatnonzero(allowed)
        kinds = {(columns.instance.nodes[n].model, int(columns.fleet.gpus[n])) for n in at}
        for model, gpus in sorted(kinds):
            size = np.where(asks.nodes[chosen] > 0, gpus * asks.nodes[chosen], asks.gpus[chosen])
            size = np.maximum(size, columns.room[chosen])
            fits = (asks.nodes[chosen] > 0) | (asks.gpus[chosen] <= gpus)
            cheapest = _times(size, _cheapest(columns, chosen, *lines[model]))
            cost[chosen] = np.where(fits, np.minimum(cost[chosen], cheapest), cost[chosen])
    for tenant, points in sorted(certificate.quotas.items()):
        if tenant not in columns.instance.quota:
            raise ValueError(f"a certificate has prices of {tenant!r}, who has no quota")
        instants, prices = _line(points)
        limit = columns.instance.quota[tenant]
        capacity += limit * int(prices.sum())
        of_it = [n for n, ask in enumerate(columns.instance.asks) if ask.tenant == tenant]
        chosen = np.array([n for n in of_it if wanted[n]], np.int64)
        cost[chosen] += _times(columns.size[chosen], _cheapest(columns, chosen, instants, prices))
    left = columns.value[wanted] * scale - cost[wanted]
    return int(capacity + int(np.maximum(left, 0).sum())) // scale


def _times(size: Ints, price: Ints) -> Ints:
    """Size x price, at most COST_MAX: more than any value costs too much in any case."""
    found: Ints = np.where(price > COST_MAX // np.maximum(size, 1), COST_MAX, size * price)
    return found


def _line(points: tuple[tuple[int, int], ...]) -> tuple[Ints, Ints]:
    line = np.array(points, np.int64).reshape(-1, 2)
    instants, prices = line[:, 0].copy(), line[:, 1].copy()
    if (prices < 0).any() or (np.diff(instants) <= 0).any():
        raise ValueError("prices of a certificate are 0 or more, at instants in their order")
    if sum(prices.tolist()) > COST_MAX:
        raise ValueError("the prices of a certificate sum to too much")
    return instants, prices


def _worth(columns: Columns, model: str, instants: Ints, prices: Ints) -> int:
    """What the GPUs of a model that are up at the priced instants are worth."""
    total = 0
    nodes = columns.instance.nodes
    for node, gpus in zip(nodes, columns.fleet.gpus.tolist(), strict=True):
        total += gpus if node.model == model else 0
    up = np.full(len(instants), total, np.int64)
    spans: dict[int, list[tuple[int, int]]] = {}
    for node_at, start, end in columns.down:
        if nodes[node_at].model == model:
            spans.setdefault(node_at, []).append((start, end))
    for node_at, of_it in spans.items():
        is_down = np.zeros(len(instants), np.bool_)
        for start, end in of_it:
            is_down |= (instants >= start) & (instants < end)
        up -= is_down * int(columns.fleet.gpus[node_at])
    return sum(a * b for a, b in zip(up.tolist(), prices.tolist(), strict=True))


def _cheapest(columns: Columns, chosen: Ints, instants: Ints, prices: Ints) -> Ints:
    """The least that one GPU costs throughout a reservation, over all of its starts."""
    asks = columns.asks
    release, latest = asks.release[chosen], asks.latest[chosen]
    duration = asks.duration[chosen]
    total = np.concatenate([[0], np.cumsum(prices)])

    def between(start: Ints, end: Ints) -> Ints:
        upto = np.searchsorted(instants, end)
        found: Ints = total[upto] - total[np.searchsorted(instants, start)]
        return found

    least = between(release, release + duration)
    flexible = np.flatnonzero(latest > release)
    for r in flexible.tolist():
        low, high, length = int(release[r]), int(latest[r]), int(duration[r])
        inside = instants[np.searchsorted(instants, low) : np.searchsorted(instants, high)] + 1
        first = np.searchsorted(instants, low + length)
        ends = instants[first : np.searchsorted(instants, high + length, side="right")] - length
        starts = np.concatenate([inside, ends, [high]])
        least[r] = min(int(least[r]), int(between(starts, starts + length).min()))
    return least

"""Complete placements of an instance by several orders, and the best of them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from solvers.planning.columns import Columns
from solvers.planning.placing import Asks, Fleet, Plan, fill, free_levels, sweep
from solvers.planning.prices import Guide
from solvers.planning.profiles import Ints, Rows, grown

Places = Mapping[int, tuple[int, tuple[int, ...]]]
"""Of each placed reservation, by number: its start, and its nodes by number."""

LOOKS_MAX = 4_000_000
"""Most (reservation, node) pairs for orders that look at every node each time."""
GOOD_SHARE = 0.98
"""Of the bound: a large instance that is placed as well as this is tried in no other order."""
RUNS_FIRST = 1024


class Placement:
    """Rows and runs that grow as they are filled."""

    def __init__(self, columns: Columns) -> None:
        count = len(columns.asks.gpus)
        self.columns = columns
        self.rows: Rows = columns.rows()
        self.plan = _no_plan(count, max(RUNS_FIRST, len(columns.fleet.gpus)))

    def with_asks(self, asks: Asks, fleet: Fleet) -> "Placement":
        """Other asks over the same rows, with nothing of them placed."""
        count = len(asks.gpus)
        other = Placement.__new__(Placement)
        other.columns = replace(self.columns, asks=asks, fleet=fleet)
        other.rows = self.rows
        other.plan = _no_plan(count, max(RUNS_FIRST, len(fleet.gpus)))
        return other

    def grow(self) -> None:
        """Twice as much room."""
        self.rows = grown(self.rows)
        nodes = self.plan.nodes
        self.plan = self.plan._replace(nodes=np.concatenate([nodes, np.zeros_like(nodes)]))

    def sweep(self, order: Ints, starts: Ints) -> None:
        """Place some in the order of their starts."""
        columns = self.columns
        ends = starts[order] + columns.asks.duration[order]
        by_end = order[np.argsort(ends, kind="stable")]
        now, bits = free_levels(columns.fleet)
        state = np.zeros(2, np.int64)
        while not sweep(
            *(columns.asks, columns.fleet, self.rows, self.plan, order),
            *(by_end, starts, state, now, bits),
        ):
            self.grow()

    def fill(self, order: Ints) -> None:
        """Place those of an order that are not placed yet, wherever they fit."""
        columns, plan = self.columns, self.plan
        left = order[plan.first[order] < 0]
        placed = np.flatnonzero(plan.first >= 0)
        instants = np.unique(plan.start[placed] + columns.asks.duration[placed])
        state = np.zeros(1, np.int64)
        while not fill(columns.asks, columns.fleet, self.rows, self.plan, left, instants, state):
            self.grow()

    def places(self) -> dict[int, tuple[int, tuple[int, ...]]]:
        """Who is placed, and where."""
        plan = self.plan
        nodes, starts = plan.nodes.tolist(), plan.start.tolist()
        first, length = plan.first.tolist(), plan.length.tolist()
        return {
            r: (starts[r], tuple(nodes[at : at + length[r]]))
            for r, at in enumerate(first)
            if at >= 0
        }

    def value(self) -> int:
        """What the placed ones are worth."""
        return int(self.columns.value[self.plan.first >= 0].sum())


def _no_plan(asks: int, runs: int) -> Plan:
    zero = np.zeros(asks, np.int64)
    return Plan(zero, zero - 1, zero.copy(), np.zeros(runs, np.int64), np.zeros(1, np.int64))


def best_placement(columns: Columns, guide: Guide) -> Placement:
    """The placement of most value among a few orders; the first of equals."""
    is_large = len(columns.value) * len(columns.fleet.gpus) > LOOKS_MAX
    best: Placement | None = None
    for placement in _attempts(columns, guide):
        if best is None or placement.value() > best.value():
            best = placement
        if best.value() >= guide.bound or (is_large and best.value() >= GOOD_SHARE * guide.bound):
            break
    assert best is not None
    return best


def _attempts(columns: Columns, guide: Guide) -> Iterator[Placement]:
    asks, value = columns.asks, columns.value
    count = len(value)
    everyone = np.arange(count)
    area = np.maximum(columns.size * asks.duration, 1)
    density = value / area
    whole = asks.nodes > 0
    started = asks.started > 0
    by_worth = np.lexsort((everyone, -area, -density, -guide.share, ~started))
    for least in (1.0, 1e-9):
        chosen = np.flatnonzero((guide.share >= least) & (asks.latest >= asks.release))
        start = guide.starts[chosen]
        keys = (chosen, -columns.size[chosen], ~whole[chosen], ~started[chosen], start)
        placement = Placement(columns)
        placement.sweep(chosen[np.lexsort(keys)], guide.starts)
        placement.fill(by_worth)
        yield placement
    if count * len(columns.fleet.gpus) > LOOKS_MAX:
        return
    for order in (
        np.lexsort((everyone, -area, -density, ~started)),
        np.lexsort((everyone, -columns.size, -density, ~started)),
        np.lexsort((everyone, asks.latest + asks.duration, -guide.share, ~started)),
        np.lexsort((everyone, -value, ~started)),
        np.lexsort((everyone, asks.release, -columns.size, ~started)),
    ):
        placement = Placement(columns)
        placement.fill(order)
        yield placement


def placement_of(columns: Columns, places: Places) -> Placement:
    """The rows of a given plan, so that one can ask what still fits."""
    placement = Placement(columns)
    home = np.array([node for r in sorted(places) for node in places[r][1]] or [0], np.int64)
    counts = np.array([len(places[r][1]) if r in places else 0 for r in range(len(columns.value))])
    first = np.cumsum(counts) - counts
    starts = columns.asks.release.copy()
    for r, (start, _) in places.items():
        starts[r] = start
    pinned = columns.asks._replace(
        release=starts,
        latest=np.maximum(starts, columns.asks.latest),
        at_first=first.astype(np.int64),
        at_count=counts.astype(np.int64),
        at_nodes=home,
        started=np.ones(len(counts), np.int64),
    )
    order = np.array(sorted(places), np.int64)
    state = np.zeros(1, np.int64)
    none = np.zeros(0, np.int64)
    while not fill(pinned, columns.fleet, placement.rows, placement.plan, order, none, state):
        placement.grow()
    return placement

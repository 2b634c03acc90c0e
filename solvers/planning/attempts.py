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
GOOD_SHARE = 0.985
"""Of the bound: a large instance that is placed as well as this is tried in no other order."""
AREA_FIRST = 0.99
"""Of the area of what the flow admits in full: those who make it up are placed before the rest."""
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
        """Place some in the order of their starts, around those of them that are placed already."""
        columns, plan = self.columns, self.plan
        starts = np.where(plan.first >= 0, plan.start, starts)
        order = order[np.argsort(starts[order], kind="stable")]
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
    """The placement of most value among a few orders; the first of equals.

    Of a large instance only the best is filled up with what the flow does not admit in full.
    """
    if len(columns.value) * len(columns.fleet.gpus) > LOOKS_MAX:
        best = _best(_swept(columns, guide), GOOD_SHARE * guide.bound)
        best.fill(_by_worth(columns, guide))
        return best
    return _best(_filled(columns, guide), guide.bound)


def _best(attempts: Iterator[Placement], enough: float) -> Placement:
    best = next(attempts)
    while best.value() < enough:
        placement = next(attempts, None)
        if placement is None:
            break
        if placement.value() > best.value():
            best = placement
    return best


def _area(columns: Columns) -> Ints:
    """GPUs times duration, at least 1."""
    found: Ints = np.maximum(columns.size * columns.asks.duration, 1)
    return found


def _by_worth(columns: Columns, guide: Guide) -> Ints:
    """Everyone: what the flow admits first, then by value for its GPUs and time, large first."""
    area = _area(columns)
    everyone = np.arange(len(area))
    keys = (everyone, -area, -columns.value / area, -guide.share, columns.asks.started == 0)
    return np.lexsort(keys)


def _in_time(columns: Columns, guide: Guide, least: float) -> Ints:
    """Those of whom the flow admits at least a share, by start; whole nodes first, then large."""
    asks = columns.asks
    chosen = np.flatnonzero((guide.share >= least) & (asks.latest >= asks.release))
    whole, started = asks.nodes[chosen] > 0, asks.started[chosen] > 0
    keys = (chosen, -columns.size[chosen], ~whole, ~started, guide.starts[chosen])
    found: Ints = chosen[np.lexsort(keys)]
    return found


def _swept(columns: Columns, guide: Guide) -> Iterator[Placement]:
    """Placements of what the flow admits in full: by start alone, or what is hard to place first.

    Gangs that need one rack are placed before anything breaks racks up; where no rack matters,
    those few that make up most of the area come before the many small ones.
    """
    asks = columns.asks
    order = _in_time(columns, guide, 1.0)
    area = _area(columns)[order]
    by_area = order[np.lexsort((order, -area, asks.started[order] == 0))]
    most = np.searchsorted(np.cumsum(np.sort(area)[::-1]), AREA_FIRST * area.sum())
    gangs = order[asks.nodes[order] > 1]
    by_size = np.lexsort((gangs, guide.starts[gangs], -asks.nodes[gangs], asks.started[gangs] == 0))
    firsts = [order[:0], by_area[:most]]
    for first in [gangs[by_size], *firsts] if asks.one_rack.any() else firsts:
        placement = Placement(columns)
        placement.fill(first)
        placement.sweep(order, guide.starts)
        yield placement


def _filled(columns: Columns, guide: Guide) -> Iterator[Placement]:
    """Placements by sweeps that are filled up, and by orders that look at every node each time."""
    asks, value, area = columns.asks, columns.value, _area(columns)
    everyone = np.arange(len(value))
    density, started = value / area, asks.started > 0
    for least in (1.0, 1e-9):
        placement = Placement(columns)
        placement.sweep(_in_time(columns, guide, least), guide.starts)
        placement.fill(_by_worth(columns, guide))
        yield placement
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

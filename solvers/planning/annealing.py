"""Rounds of ruining and building anew, under a heat that falls; the best placement is kept."""

from collections.abc import Iterator

import numpy as np

from solvers.planning.attempts import Places, placement_of
from solvers.planning.columns import Columns
from solvers.planning.profiles import Ints, Rows
from solvers.planning.ruining import FULL, Board, Groups, ruin

ROUNDS_PER_SECOND = 1_000
"""What stands for a deterministic second, so that a slow machine gives the same plan."""
ROUNDS_AT_ONCE = 500
HEAT_FIRST, HEAT_LAST = 0.04, 0.002
"""Of the mean value of a reservation."""
GROUP_NODES = 16
"""Nodes that are cleared together where racks do not matter."""
RACK_NODES_MAX = 64
POOL_TIMES = 8
TOLD_TIMES = 6
"""How often, at most, a better placement is told."""


def can_anneal(columns: Columns) -> bool:
    """Whether an instance is of the kind: nobody exclusive, nobody planned already."""
    asks = columns.asks
    plain = not asks.exclusive.any() and not asks.at_count.any() and not asks.started.any()
    return bool(plain and len(columns.fleet.gpus) and len(asks.gpus))


def anneal(
    columns: Columns, places: Places, bound: int, seconds: float, seed: int
) -> Iterator[dict[int, tuple[int, tuple[int, ...]]]]:
    """Better and better placements; the same input gives the same ones."""
    rows = _roomy(placement_of(columns, places).rows)
    board, starts = _board(columns, places)
    asks = columns.asks._replace(
        release=starts, latest=np.where(board.placed, starts, columns.asks.latest)
    )
    groups = _groups(columns)
    mean = float(columns.value.mean())
    turns = max(1, int(seconds * ROUNDS_PER_SECOND / ROUNDS_AT_ONCE))
    every = max(1, turns // TOLD_TIMES)
    kept = (board.placed, board.spots)
    value = best = told = int(columns.value[list(places)].sum()) if places else 0
    for turn in range(turns):
        heat = max(1e-9, mean * HEAT_FIRST * (HEAT_LAST / HEAT_FIRST) ** (turn / turns))
        gained = ruin(
            *(asks, columns.fleet, rows, board, groups, columns.size, columns.value),
            *(seed * 100_003 + turn, ROUNDS_AT_ONCE, heat),
        )
        if gained == FULL:
            return
        value += gained
        if value > best:
            best = value
            kept = (board.placed.copy(), board.spots.copy())
        is_done = best >= bound or not board.outs[0]
        if best > told and (is_done or (turn + 1) % every == 0 or turn + 1 == turns):
            told = best
            yield _places(board._replace(placed=kept[0], spots=kept[1]), asks.nodes, starts)
        if is_done:
            return


def _roomy(rows: Rows) -> Rows:
    """The same rows with room for all that the rounds may need."""

    def larger(array: Ints) -> Ints:
        return np.concatenate([array, np.zeros(len(array) * (POOL_TIMES - 1), array.dtype)])

    return rows._replace(
        since=larger(rows.since),
        used=larger(rows.used),
        owner=larger(rows.owner),
        shut=larger(rows.shut),
    )


def _board(columns: Columns, places: Places) -> tuple[Board, Ints]:
    asks = columns.asks
    count, nodes = len(asks.gpus), len(columns.fleet.gpus)
    need = np.maximum(1, asks.nodes)
    run = np.cumsum(need) - need
    spots = np.zeros(int(need.sum()), np.int64)
    starts = asks.release.copy()
    held: list[list[int]] = [[] for _ in range(nodes)]
    placed = np.zeros(count, np.bool_)
    for r, (start, at) in sorted(places.items()):
        spots[run[r] : run[r] + len(at)] = at
        starts[r], placed[r] = start, True
        for node in at:
            held[node].append(r)
    most = max((len(each) for each in held), default=0)
    on_node = np.zeros((nodes, 2 * most + 64), np.int64)
    for node, each in enumerate(held):
        on_node[node, : len(each)] = each
    out = np.zeros(count, np.int64)
    waiting = np.flatnonzero(~placed)
    out[: len(waiting)] = waiting
    out_at = np.zeros(count, np.int64)
    out_at[waiting] = np.arange(len(waiting))
    counts = np.array([len(each) for each in held], np.int64)
    outs = np.array([len(waiting)], np.int64)
    return Board(placed, run, spots, on_node, counts, out, out_at, outs), starts


def _groups(columns: Columns) -> Groups:
    """Racks where they are small enough, else runs of nodes."""
    fleet = columns.fleet
    first, end = fleet.rack_first, fleet.rack_end
    if int((end - first).max()) > RACK_NODES_MAX and not columns.asks.one_rack.any():
        first = np.arange(0, len(fleet.gpus), GROUP_NODES)
        end = np.minimum(first + GROUP_NODES, len(fleet.gpus))
    of_node = np.searchsorted(first, np.arange(len(fleet.gpus)), side="right") - 1
    return Groups(first.astype(np.int64), end.astype(np.int64), of_node.astype(np.int64))


def _places(board: Board, nodes: Ints, starts: Ints) -> dict[int, tuple[int, tuple[int, ...]]]:
    spots, run = board.spots.tolist(), board.run.tolist()
    return {
        r: (int(starts[r]), tuple(sorted(spots[run[r] : run[r] + max(1, int(nodes[r]))])))
        for r in np.flatnonzero(board.placed).tolist()
    }

"""Improving a placement by ruining a part of it and building it anew, as numba kernels.

A few groups of nodes are cleared around a reservation that found no place; who was there and who
waits is put back in another order, each where it leaves the least behind. What is worth less is
kept with a chance that falls with the heat, else taken back. Fixed windows, nobody exclusive.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.planning.placing import Asks, Fleet
from solvers.planning.profiles import (
    ALONE,
    Ints,
    Rows,
    hold,
    make_room,
    peak_if_fits,
    release,
)

CLEARED_MOST = 160
"""Reservations that one ruin takes out."""
ASKED_MOST = 48
"""Reservations without a place that are tried in one of them."""
GROUPS_MOST = 3
BLINK = 0.03
"""How often the best group or node is passed over."""
ORDERS = 5
FULL = -(1 << 62)
"""What `ruin` gains where an array was full."""


class Board(NamedTuple):
    """Where everything is, in a form that can be changed in place."""

    placed: NDArray[np.bool_]
    run: Ints
    """Where the nodes of each begin in `spots`; their number never changes."""
    spots: Ints
    on_node: Ints
    """Nodes x most holders: who is on each."""
    held: Ints
    """How many."""
    out: Ints
    """Who has no place, in no order."""
    out_at: Ints
    outs: Ints
    """One entry: how many have none."""


class Groups(NamedTuple):
    """Runs of nodes that are cleared together, and the group of each node."""

    first: Ints
    end: Ints
    of_node: Ints


@njit(cache=True)
def _need(asks, r):  # type: ignore[no-untyped-def]
    return max(1, asks.nodes[r])


@njit(cache=True)
def _gpus(asks, fleet, r, node):  # type: ignore[no-untyped-def]
    return asks.gpus[r] if asks.nodes[r] == 0 else fleet.gpus[node]


@njit(cache=True)
def _take(asks, fleet, rows, board, r):  # type: ignore[no-untyped-def]
    """Hold the nodes that `spots` names; False where an array is full and nothing was done."""
    start, end = asks.release[r], asks.release[r] + asks.duration[r]
    row = asks.quota_row[r]
    for j in range(_need(asks, r)):
        node = board.spots[board.run[r] + j]
        if board.held[node] == board.on_node.shape[1] or not make_room(rows, node):
            return False
    if row >= 0 and not make_room(rows, row):
        return False
    total = 0
    for j in range(_need(asks, r)):
        node = board.spots[board.run[r] + j]
        amount = _gpus(asks, fleet, r, node)
        hold(rows, node, start, end, amount, asks.tenant[r], exclusive=False)
        board.on_node[node, board.held[node]] = r
        board.held[node] += 1
        total += amount
    if row >= 0:
        hold(rows, row, start, end, total, ALONE, exclusive=False)
    board.placed[r] = True
    last = board.out[board.outs[0] - 1]
    board.out[board.out_at[r]] = last
    board.out_at[last] = board.out_at[r]
    board.outs[0] -= 1
    return True


@njit(cache=True)
def _leave(asks, fleet, rows, board, r):  # type: ignore[no-untyped-def]
    """Let go of its nodes; False where an array is full and nothing was done."""
    start, end = asks.release[r], asks.release[r] + asks.duration[r]
    row = asks.quota_row[r]
    for j in range(_need(asks, r)):
        if not make_room(rows, board.spots[board.run[r] + j]):
            return False
    if row >= 0 and not make_room(rows, row):
        return False
    total = 0
    for j in range(_need(asks, r)):
        node = board.spots[board.run[r] + j]
        amount = _gpus(asks, fleet, r, node)
        release(rows, node, start, end, amount)
        total += amount
        for at in range(board.held[node]):
            if board.on_node[node, at] == r:
                board.held[node] -= 1
                board.on_node[node, at] = board.on_node[node, board.held[node]]
                break
    if row >= 0:
        release(rows, row, start, end, total)
    board.placed[r] = False
    board.out[board.outs[0]] = r
    board.out_at[r] = board.outs[0]
    board.outs[0] += 1
    return True


@njit(cache=True)
def _overlaps(asks, r, start, end):  # type: ignore[no-untyped-def]
    return asks.release[r] < end and start < asks.release[r] + asks.duration[r]


@njit(cache=True)
def _choose(groups, wanted, chosen, inside):  # type: ignore[no-untyped-def]
    """Some different groups at random; how many."""
    inside[:] = False
    got = 0
    for _ in range(8 * wanted):
        group = np.random.randint(groups.first.shape[0])
        if not inside[group]:
            inside[group] = True
            chosen[got] = group
            got += 1
            if got == wanted:
                break
    return got


@njit(cache=True)
def _inside(asks, board, groups, r, inside):  # type: ignore[no-untyped-def]
    for j in range(_need(asks, r)):  # noqa: SIM110 - kernels know no generators
        if not inside[groups.of_node[board.spots[board.run[r] + j]]]:
            return False
    return True


@njit(cache=True)
def _whom(asks, board, groups, chosen, some, inside, start, end, chance, cleared):  # type: ignore[no-untyped-def]
    """Who is taken out: of those wholly inside the groups, some that overlap the span."""
    got = 0
    for g in range(some):
        for node in range(groups.first[chosen[g]], groups.end[chosen[g]]):
            for at in range(board.held[node]):
                r = board.on_node[node, at]
                first = board.spots[board.run[r]] == node
                if not first or asks.started[r] or not _overlaps(asks, r, start, end):
                    continue
                if np.random.random() < chance and _inside(asks, board, groups, r, inside):
                    cleared[got] = r
                    got += 1
                    if got == cleared.shape[0]:
                        return got
    return got


@njit(cache=True)
def _find(asks, fleet, rows, groups, chosen, some, r, found):  # type: ignore[no-untyped-def]
    """Nodes for one inside the chosen groups, where it leaves the least behind; True if any."""
    start, end = asks.release[r], asks.release[r] + asks.duration[r]
    allowed, tenant = fleet.allowed[asks.kind[r]], asks.tenant[r]
    need, total = _need(asks, r), 0
    together = asks.nodes[r] == 1 or (asks.nodes[r] > 1 and asks.one_rack[r] > 0)
    best, best_group = -1, -1
    for g in range(some):
        free = 0
        for node in range(groups.first[chosen[g]], groups.end[chosen[g]]):
            amount = _gpus(asks, fleet, r, node)
            if not allowed[node]:
                continue
            peak = peak_if_fits(rows, node, start, end, amount, tenant, exclusive=False)
            if peak < 0:
                continue
            if asks.nodes[r] == 0:
                if peak > best and np.random.random() > BLINK:
                    best = peak
                    found[0] = node
            elif together:
                free += 1
            elif total + free < need:
                found[total + free] = node
                free += 1
        total += free
        tight = free >= need and (best_group < 0 or free < best)
        if together and tight and np.random.random() > BLINK:
            best, best_group = free, g
    if asks.nodes[r] == 0:
        return best >= 0
    if not together:
        return total >= need
    if best_group < 0:
        return False
    got = 0
    for node in range(groups.first[chosen[best_group]], groups.end[chosen[best_group]]):
        amount = _gpus(asks, fleet, r, node)
        fits = allowed[node] and got < need
        if fits and peak_if_fits(rows, node, start, end, amount, tenant, exclusive=False) >= 0:
            found[got] = node
            got += 1
    return got == need


@njit(cache=True)
def _quota(asks, fleet, rows, r, found):  # type: ignore[no-untyped-def]
    row = asks.quota_row[r]
    if row < 0:
        return True
    total = 0
    for j in range(_need(asks, r)):
        total += _gpus(asks, fleet, r, found[j])
    end = asks.release[r] + asks.duration[r]
    return peak_if_fits(rows, row, asks.release[r], end, total, ALONE, exclusive=False) >= 0


@njit(cache=True)
def _keys(asks, size, value, whom, count, keys):  # type: ignore[no-untyped-def]
    """In which order they are put back: one of a few, each with some noise."""
    order = np.random.randint(ORDERS)
    noise = 0.25 * np.random.random()
    for i in range(count):
        r = whom[i]
        area = max(1, size[r] * asks.duration[r])
        if order == 0:
            key = float(value[r])
        elif order == 1:
            key = float(area)
        elif order == 2:
            key = value[r] / area
        elif order == 3:
            key = float(size[r])
        else:
            key = value[r] / area * size[r]
        keys[i] = -key * np.exp(noise * np.random.normal())


@njit(cache=True)
def _asked(asks, board, value, centre, waiting, start, end, tried, whom, count):  # type: ignore[no-untyped-def]
    """Behind those that were cleared, who else is tried: the centre, and some that wait."""
    for i in range(ASKED_MOST + 1):
        r = centre if i == 0 else board.out[np.random.randint(waiting)]
        if not tried[r] and _overlaps(asks, r, start, end) and value[r] > 0:
            tried[r] = True
            whom[count] = r
            count += 1
    return count


@njit(cache=True)
def _rebuild(asks, fleet, rows, board, groups, chosen, some, value, whom, order, found):  # type: ignore[no-untyped-def]
    """Put back whoever fits, in an order; the value of those, or -1 where an array is full."""
    won = 0
    for i in order:
        r = whom[i]
        if asks.latest[r] != asks.release[r] or asks.started[r]:
            continue
        if not _find(asks, fleet, rows, groups, chosen, some, r, found):
            continue
        if not _quota(asks, fleet, rows, r, found):
            continue
        for j in range(_need(asks, r)):
            board.spots[board.run[r] + j] = found[j]
        if not _take(asks, fleet, rows, board, r):
            return -1
        won += value[r]
    return won


@njit(cache=True)
def _undo(asks, fleet, rows, board, whom, count, cleared, before):  # type: ignore[no-untyped-def]
    """Everyone back where they were; False where an array is full."""
    for i in range(count):
        if board.placed[whom[i]] and not _leave(asks, fleet, rows, board, whom[i]):
            return False
    for i in range(cleared):
        r = whom[i]
        for j in range(_need(asks, r)):
            board.spots[board.run[r] + j] = before[board.run[r] + j]
        if not _take(asks, fleet, rows, board, r):
            return False
    return True


@njit(cache=True)
def _clear(asks, fleet, rows, board, value, whom, cleared, before):  # type: ignore[no-untyped-def]
    """Take them out, noting where they were; their value, or -1 where an array is full."""
    lost = 0
    for i in range(cleared):
        r = whom[i]
        for j in range(_need(asks, r)):
            before[board.run[r] + j] = board.spots[board.run[r] + j]
        if not _leave(asks, fleet, rows, board, r):
            return -1
        lost += value[r]
    return lost


@njit(cache=True)
def ruin(asks, fleet, rows, board, groups, size, value, seed, rounds, heat):  # type: ignore[no-untyped-def]
    """Ruin and build anew so many times; the value gained, or FULL where an array was full.

    Then the board is no placement any more, and is to be thrown away.
    """
    np.random.seed(seed)
    chosen = np.zeros(GROUPS_MOST, np.int64)
    inside = np.zeros(groups.first.shape[0], np.bool_)
    whom = np.zeros(CLEARED_MOST + ASKED_MOST + 1, np.int64)
    keys = np.zeros(whom.shape[0])
    before = np.zeros(board.spots.shape[0], np.int64)
    found = np.zeros(max(1, fleet.gpus.shape[0]), np.int64)
    tried = np.zeros(value.shape[0], np.bool_)
    gained = 0
    for _ in range(rounds):
        waiting = board.outs[0]
        if waiting == 0:
            return gained
        centre = board.out[np.random.randint(waiting)]
        start, end = asks.release[centre], asks.release[centre] + asks.duration[centre]
        some = _choose(groups, 1 + np.random.randint(GROUPS_MOST), chosen, inside)
        chance = 0.4 + 0.6 * np.random.random()
        cleared = _whom(
            asks, board, groups, chosen, some, inside, start, end, chance, whom[:CLEARED_MOST]
        )
        lost = _clear(asks, fleet, rows, board, value, whom, cleared, before)
        if lost < 0:
            return FULL
        count = _asked(asks, board, value, centre, waiting, start, end, tried, whom, cleared)
        _keys(asks, size, value, whom, count, keys)
        order = np.argsort(keys[:count])
        won = _rebuild(asks, fleet, rows, board, groups, chosen, some, value, whom, order, found)
        if won < 0:
            return FULL
        tried[whom[:count]] = False
        worse = won - lost
        if worse >= 0 or np.random.random() < np.exp(worse / heat):
            gained += worse
        elif not _undo(asks, fleet, rows, board, whom, count, cleared, before):
            return FULL
    return gained


__all__ = ["FULL", "Asks", "Board", "Fleet", "Groups", "Rows", "ruin"]

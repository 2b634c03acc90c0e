"""Placing reservations one after another, as numba kernels over exact step functions.

`sweep` places in the order of starts and finds nodes by bit sets of how many GPUs are free now;
`fill` places in any order and looks at every node. Both end early with what is done so far when
an array is full; the caller makes it larger and goes on.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.planning.profiles import (
    ALONE,
    NEVER,
    Ints,
    earliest,
    exact_peaks,
    hold,
    make_room,
    peak_if_fits,
    slot_peaks,
)

U = np.uint64
STARTS_TRIED_MAX = 64
"""Most starts at which a gang with a flexible window is tried."""


class Asks(NamedTuple):
    """What is to be placed: an entry per reservation, in the order of their ids."""

    gpus: Ints
    nodes: Ints
    release: Ints
    latest: Ints
    duration: Ints
    tenant: Ints
    exclusive: Ints
    one_rack: Ints
    kind: Ints
    """Which row of Fleet.allowed says where it may sit."""
    quota_row: Ints
    """The row of its tenant's quota, or -1."""
    at_first: Ints
    at_count: Ints
    at_nodes: Ints
    """All nodes where anything is planned already, behind one another."""
    started: Ints


class Fleet(NamedTuple):
    """Where it can be placed: nodes in the order of rack and id."""

    gpus: Ints
    rack: Ints
    rack_first: Ints
    rack_end: Ints
    allowed: NDArray[np.bool_]
    """Kinds x nodes."""


class Plan(NamedTuple):
    """What was placed: the start, and a run of `nodes` for each."""

    start: Ints
    first: Ints
    """The begin of its run, or -1."""
    length: Ints
    nodes: Ints
    end: Ints
    """One entry: the end of the last run."""


@njit(cache=True)
def _amount(asks, fleet, r, node):  # type: ignore[no-untyped-def]
    return asks.gpus[r] if asks.nodes[r] == 0 else fleet.gpus[node]


@njit(cache=True)
def _peak(asks, fleet, rows, r, node, start):  # type: ignore[no-untyped-def]
    """How much is in use there, or -1 where r does not fit from that start."""
    if not fleet.allowed[asks.kind[r], node]:
        return -1
    end = start + asks.duration[r]
    amount = _amount(asks, fleet, r, node)
    return peak_if_fits(rows, node, start, end, amount, asks.tenant[r], asks.exclusive[r] > 0)


@njit(cache=True)
def _has_quota(asks, fleet, rows, r, start, chosen, count):  # type: ignore[no-untyped-def]
    row = asks.quota_row[r]
    if row < 0:
        return True
    total = 0
    for j in range(count):
        total += _amount(asks, fleet, r, chosen[j])
    return (
        peak_if_fits(rows, row, start, start + asks.duration[r], total, ALONE, exclusive=False) >= 0
    )


@njit(cache=True)
def _commit(asks, fleet, rows, plan, r, start, chosen, count):  # type: ignore[no-untyped-def]
    """Hold the chosen nodes; False, with nothing held, where an array is full."""
    if plan.end[0] + count > plan.nodes.shape[0]:
        return False
    row = asks.quota_row[r]
    if row >= 0 and not make_room(rows, row):
        return False
    for j in range(count):
        if not make_room(rows, chosen[j]):
            return False
    end = start + asks.duration[r]
    total = 0
    plan.first[r] = plan.end[0]
    for j in range(count):
        node = chosen[j]
        amount = _amount(asks, fleet, r, node)
        hold(rows, node, start, end, amount, asks.tenant[r], asks.exclusive[r] > 0)
        plan.nodes[plan.end[0] + j] = node
        total += amount
    if row >= 0:
        hold(rows, row, start, end, total, ALONE, exclusive=False)
    plan.end[0] += count
    plan.length[r] = count
    plan.start[r] = start
    return True


@njit(cache=True)
def _at_home(asks, fleet, rows, r, start, chosen):  # type: ignore[no-untyped-def]
    """The nodes where it is planned already, if it fits there; how many, or 0."""
    wanted = max(1, asks.nodes[r])
    if asks.at_count[r] != wanted:
        return 0
    rack = -1
    for j in range(wanted):
        node = asks.at_nodes[asks.at_first[r] + j]
        if _peak(asks, fleet, rows, r, node, start) < 0:
            return 0
        if asks.one_rack[r] and rack not in {-1, fleet.rack[node]}:
            return 0
        rack = fleet.rack[node]
        chosen[j] = node
    return wanted


@njit(cache=True)
def _gang(asks, fleet, rows, r, start, fits, chosen):  # type: ignore[no-untyped-def]
    """Whole nodes from those that `fits` may name: the lowest, or in one rack the tightest."""
    wanted = asks.nodes[r]
    found = 0
    if not asks.one_rack[r]:
        for node in range(fits.shape[0]):
            if fits[node] and _peak(asks, fleet, rows, r, node, start) == 0:
                chosen[found] = node
                found += 1
                if found == wanted:
                    return wanted
        return 0
    last_count, last_rack = 0, -1
    while True:
        best_rack, best_count = -1, 1 << 60
        for rack in range(fleet.rack_first.shape[0]):
            count = 0
            for node in range(fleet.rack_first[rack], fleet.rack_end[rack]):
                count += fits[node]
            if count < wanted:
                continue
            later = count > last_count or (count == last_count and rack > last_rack)
            if later and count < best_count:
                best_count, best_rack = count, rack
        if best_rack < 0:
            return 0
        last_count, last_rack = best_count, best_rack
        found = 0
        for node in range(fleet.rack_first[best_rack], fleet.rack_end[best_rack]):
            if fits[node] and _peak(asks, fleet, rows, r, node, start) == 0:
                chosen[found] = node
                found += 1
                if found == wanted:
                    return wanted


@njit(cache=True)
def _shift(asks, fleet, plan, r, sign, now, bits, empty):  # type: ignore[no-untyped-def]
    """A placed one leaves its nodes (1), or comes to them (-1): their levels of free GPUs move."""
    for j in range(plan.length[r]):
        node = plan.nodes[plan.first[r] + j]
        free = now[node] + sign * _amount(asks, fleet, r, node)
        word, bit = node >> 6, U(1) << U(node & 63)
        bits[now[node], word] &= ~bit
        bits[free, word] |= bit
        now[node] = free
        empty[node] = 1 if free == fleet.gpus[node] else 0


@njit(cache=True)
def _lowest(word):  # type: ignore[no-untyped-def]
    """The index of the lowest bit that is set."""
    index = 0
    for width in (32, 16, 8, 4, 2, 1):
        if word & ((U(1) << U(width)) - U(1)) == U(0):
            word >>= U(width)
            index += width
    return index


@njit(cache=True)
def _tightest(asks, fleet, rows, r, start, bits, chosen):  # type: ignore[no-untyped-def]
    """The node with the fewest GPUs free now that fits, lowest first."""
    for free in range(asks.gpus[r], bits.shape[0]):
        for word in range(bits.shape[1]):
            x = bits[free, word]
            while x != U(0):
                node = word * 64 + _lowest(x)
                x &= x - U(1)
                if _peak(asks, fleet, rows, r, node, start) >= 0:
                    chosen[0] = node
                    return 1
    return 0


@njit(cache=True)
def sweep(asks, fleet, rows, plan, order, by_end, starts, state, now, bits):  # type: ignore[no-untyped-def]
    """Place `order` (by start) at `starts`; `state` is [next of order, next of by_end].

    `now` and `bits` hold how many GPUs of each node are free at the present start, by what of
    `order` is placed, before the sweep or by it. What finds no place is left. True when all of
    `order` was tried.
    """
    count = fleet.gpus.shape[0]
    chosen = np.zeros(count, np.int64)
    empty = np.zeros(count, np.int64)
    for node in range(count):
        empty[node] = 1 if now[node] == fleet.gpus[node] else 0
    while state[0] < order.shape[0]:
        r = order[state[0]]
        start = starts[r]
        while state[1] < by_end.shape[0]:
            gone = by_end[state[1]]
            if starts[gone] + asks.duration[gone] > start:
                break
            _shift(asks, fleet, plan, gone, 1, now, bits, empty)
            state[1] += 1
        if plan.first[r] >= 0:
            _shift(asks, fleet, plan, r, -1, now, bits, empty)
            state[0] += 1
            continue
        got = _at_home(asks, fleet, rows, r, start, chosen)
        if got == 0 and not asks.started[r]:
            if asks.nodes[r] == 0:
                got = _tightest(asks, fleet, rows, r, start, bits, chosen)
            else:
                got = _gang(asks, fleet, rows, r, start, empty, chosen)
        if got > 0 and _has_quota(asks, fleet, rows, r, start, chosen, got):
            if not _commit(asks, fleet, rows, plan, r, start, chosen, got):
                return False
            _shift(asks, fleet, plan, r, -1, now, bits, empty)
        state[0] += 1
    return True


@njit(cache=True)
def _peaks(asks, rows, r, start, peaks):  # type: ignore[no-untyped-def]
    """How much is in use on each node, or -1 where r does not fit from that start."""
    end = start + asks.duration[r]
    slot_peaks(rows, start, end, asks.gpus[r], peaks)
    exact_peaks(rows, start, end, asks.gpus[r], asks.tenant[r], asks.exclusive[r] > 0, peaks)


@njit(cache=True)
def _fullest(asks, fleet, rows, r, start, peaks, chosen):  # type: ignore[no-untyped-def]
    """From a fixed start, the node that fits and is most in use; 1, or 0 where none fits."""
    best_peak = -1
    if not _has_quota(asks, fleet, rows, r, start, chosen, 1):
        return 0
    _peaks(asks, rows, r, start, peaks)
    allowed = fleet.allowed[asks.kind[r]]
    for node in range(peaks.shape[0]):
        if allowed[node] and peaks[node] > best_peak:
            best_peak = peaks[node]
            chosen[0] = node
    return 1 if best_peak >= 0 else 0


@njit(cache=True)
def _soonest(asks, fleet, rows, r, chosen):  # type: ignore[no-untyped-def]
    """The earliest start on any node, and of those the node most in use; NEVER without one."""
    best, best_peak = NEVER, -1
    row = asks.quota_row[r]
    duration, amount = asks.duration[r], asks.gpus[r]
    tenant, exclusive = asks.tenant[r], asks.exclusive[r] > 0
    for node in range(fleet.gpus.shape[0]):
        if not fleet.allowed[asks.kind[r], node]:
            continue
        start = asks.release[r]
        latest = asks.latest[r] if best == NEVER else best
        while True:
            start = earliest(rows, node, start, latest, duration, amount, tenant, exclusive)
            if start == NEVER or row < 0:
                break
            again = earliest(rows, row, start, latest, duration, amount, ALONE, exclusive=False)
            if again in {start, NEVER}:
                start = again
                break
            start = again
        if start == NEVER:
            continue
        peak = _peak(asks, fleet, rows, r, node, start)
        if best == NEVER or start < best or peak > best_peak:
            best, best_peak = start, peak
            chosen[0] = node
    return best


@njit(cache=True)
def _whole_nodes(asks, fleet, rows, r, start, fits, chosen):  # type: ignore[no-untyped-def]
    """Enough empty nodes from one start; how many, or 0."""
    _peaks(asks, rows, r, start, fits)
    allowed = fleet.allowed[asks.kind[r]]
    free = 0
    for node in range(fits.shape[0]):
        fits[node] = 1 if fits[node] == 0 and allowed[node] else 0
        free += fits[node]
    if free < asks.nodes[r]:
        return 0
    got = _gang(asks, fleet, rows, r, start, fits, chosen)
    if got > 0 and _has_quota(asks, fleet, rows, r, start, chosen, got):
        return got
    return 0


@njit(cache=True)
def _find(asks, fleet, rows, r, instants, fits, chosen):  # type: ignore[no-untyped-def]
    """Where a reservation fits: (start, how many nodes are chosen), with 0 for nowhere."""
    start = asks.release[r]
    if start > asks.latest[r]:
        return start, 0
    if asks.at_count[r] > 0:
        got = _at_home(asks, fleet, rows, r, start, chosen)
        if got > 0 and _has_quota(asks, fleet, rows, r, start, chosen, got):
            return start, got
    if asks.started[r]:
        return start, 0
    if asks.nodes[r] == 0:
        if asks.latest[r] == start:
            return start, _fullest(asks, fleet, rows, r, start, fits, chosen)
        start = _soonest(asks, fleet, rows, r, chosen)
        return start, 0 if start == NEVER else 1
    got = _whole_nodes(asks, fleet, rows, r, start, fits, chosen)
    i = np.searchsorted(instants, start + 1)
    tried = 1
    while got == 0 and i < instants.shape[0] and tried < STARTS_TRIED_MAX:
        start = instants[i]
        if start > asks.latest[r]:
            return start, 0
        got = _whole_nodes(asks, fleet, rows, r, start, fits, chosen)
        i += 1
        tried += 1
    return start, got


@njit(cache=True)
def fill(asks, fleet, rows, plan, order, instants, state):  # type: ignore[no-untyped-def]
    """Place `order`, each as early as it fits; `state` is [next of order].

    Gangs with flexible windows are tried at their release and at `instants` (sorted) within it.
    What finds no place is left. True when all of `order` was tried.
    """
    chosen = np.zeros(fleet.gpus.shape[0], np.int64)
    fits = np.zeros(fleet.gpus.shape[0], np.int64)
    while state[0] < order.shape[0]:
        r = order[state[0]]
        start, got = _find(asks, fleet, rows, r, instants, fits, chosen)
        if got > 0 and not _commit(asks, fleet, rows, plan, r, start, chosen, got):
            return False
        state[0] += 1
    return True


@njit(cache=True)
def probe(asks, fleet, rows, order, instants, found):  # type: ignore[no-untyped-def]
    """Mark in `found` which of `order` would fit, each by itself; nothing is placed."""
    chosen = np.zeros(fleet.gpus.shape[0], np.int64)
    fits = np.zeros(fleet.gpus.shape[0], np.int64)
    for i in range(order.shape[0]):
        found[i] = _find(asks, fleet, rows, order[i], instants, fits, chosen)[1] > 0


def free_levels(fleet: Fleet) -> tuple[Ints, NDArray[np.uint64]]:
    """`now` and `bits` of a sweep over an empty fleet."""
    words = -(-len(fleet.gpus) // 64)
    bits = np.zeros((int(fleet.gpus.max(initial=0)) + 1, max(1, words)), np.uint64)
    for node, gpus in enumerate(fleet.gpus.tolist()):
        bits[gpus, node >> 6] |= np.uint64(1 << (node & 63))
    return fleet.gpus.copy(), bits

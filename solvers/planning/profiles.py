"""Step functions of what is in use, as numba kernels: a row per node, and one per quota.

A row is a run of segments in shared arrays: from when, how much is used, by which tenant (ALONE
none, MIXED several), and how many exclusive holders there are. All times are exact.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

NEVER = -(1 << 62)
BEGIN = -(1 << 61)
"""Where every row begins: before any time of any instance."""
ALONE, MIXED = -1, -2
UNKNOWN = -2
ROOM_FIRST = 8
"""Segments that a row has room for at first."""
SLOT_MOST = 255
SLOTS = 1024
"""Slots of equal width in which the most in use is kept, to answer quickly where they can.

The last one reaches to the end of time.
"""

Ints = NDArray[np.int64]


class Rows(NamedTuple):
    """Every row; `pool_end` has one entry, the first segment that no row owns."""

    limit: Ints
    offset: Ints
    length: Ints
    room: Ints
    since: Ints
    used: Ints
    owner: Ints
    shut: Ints
    pool_end: Ints
    slots: NDArray[np.uint8]
    """The most in use in each slot; the first rows have it, those of nodes."""
    grid: Ints
    """Where the slots begin, how wide they are, and whether nobody is exclusive."""


def make_rows(limits: Ints, slotted: int, span: tuple[int, int], *, shared: bool) -> Rows:
    """Rows with nothing in use, each at most `limits` at once.

    The first `slotted` rows (limits below 256) get slots over a span of time; `shared` says that
    no holder is exclusive, so that counts alone decide.
    """
    count = len(limits)
    pool = max(64, 4 * ROOM_FIRST * count)
    offset = np.arange(count, dtype=np.int64) * ROOM_FIRST
    since = np.zeros(pool, np.int64)
    since[offset] = BEGIN
    owner = np.full(pool, ALONE, np.int64)
    return Rows(
        np.ascontiguousarray(limits, np.int64),
        offset,
        np.ones(count, np.int64),
        np.full(count, ROOM_FIRST, np.int64),
        since,
        np.zeros(pool, np.int64),
        owner,
        np.zeros(pool, np.int64),
        np.array([count * ROOM_FIRST], np.int64),
        np.zeros((slotted, SLOTS), np.uint8),
        np.array([span[0], max(1, -(-(span[1] - span[0]) // SLOTS)), int(shared)], np.int64),
    )


def grown(rows: Rows) -> Rows:
    """The same rows with a pool twice as large."""

    def twice(array: Ints) -> Ints:
        return np.concatenate([array, np.zeros_like(array)])

    return rows._replace(
        since=twice(rows.since),
        used=twice(rows.used),
        owner=twice(rows.owner),
        shut=twice(rows.shut),
    )


@njit(cache=True)
def segment_at(rows, row, at):  # type: ignore[no-untyped-def]
    """The index of the segment of a row in which an instant lies."""
    low = rows.offset[row]
    high = low + rows.length[row] - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if rows.since[middle] <= at:
            low = middle
        else:
            high = middle - 1
    return low


@njit(cache=True)
def peak_if_fits(rows, row, start, end, amount, tenant, exclusive):  # type: ignore[no-untyped-def]
    """The most in use throughout [start, end), or -1 where that much more does not fit."""
    most = rows.limit[row] - amount
    if most < 0:
        return -1
    i = segment_at(rows, row, start)
    last = rows.offset[row] + rows.length[row]
    peak = 0
    while i < last and rows.since[i] < end:
        if rows.used[i] > most:
            return -1
        owner = rows.owner[i]
        if owner not in {ALONE, tenant} and (exclusive or rows.shut[i] > 0):
            return -1
        peak = max(peak, rows.used[i])
        i += 1
    return peak


@njit(cache=True)
def slot_peaks(rows, start, end, amount, found):  # type: ignore[no-untyped-def]
    """For every row with slots, as `peak_if_fits` but by slots alone: UNKNOWN where they cannot tell.

    An amount of 0 stands for all that the row has.
    """
    slots, limits, grid = rows.slots, rows.limit, rows.grid
    begin, width, shared = grid[0], grid[1], grid[2] > 0
    if start < begin:
        found[:] = UNKNOWN
        return
    low = min(SLOTS - 1, (start - begin) // width)
    high = min(SLOTS - 1, (end - 1 - begin) // width)
    first = low if start == begin + low * width else low + 1
    last = high if high < SLOTS - 1 and end == begin + (high + 1) * width else high - 1
    for row in range(slots.shape[0]):
        most = limits[row] - amount if amount > 0 else 0
        peak = np.int64(0)
        for slot in range(first, last + 1):
            used = np.int64(slots[row, slot])
            peak = max(peak, used)
            if used > most:
                break
        if most < 0 or peak > most:
            found[row] = -1
            continue
        peak = max(peak, np.int64(slots[row, low]), np.int64(slots[row, high]))
        found[row] = peak if shared and peak <= most else UNKNOWN


@njit(cache=True)
def exact_peaks(rows, start, end, amount, tenant, exclusive, found):  # type: ignore[no-untyped-def]
    """Put the exact answer of `peak_if_fits` wherever `slot_peaks` has left UNKNOWN.

    One call for all rows: passing the arrays costs more than looking at one of them.
    """
    offsets, lengths, limits = rows.offset, rows.length, rows.limit
    since, used, owners, shut = rows.since, rows.used, rows.owner, rows.shut
    for row in range(found.shape[0]):
        if found[row] != UNKNOWN:
            continue
        most = limits[row] - amount if amount > 0 else 0
        low = offsets[row]
        last = low + lengths[row]
        high = last - 1
        while low < high:
            middle = (low + high + 1) >> 1
            if since[middle] <= start:
                low = middle
            else:
                high = middle - 1
        peak = 0
        while low < last and since[low] < end:
            owner = owners[low]
            alone = owner in {ALONE, tenant} or not (exclusive or shut[low] > 0)
            if used[low] > most or not alone:
                peak = -1
                break
            peak = max(peak, used[low])
            low += 1
        found[row] = peak


@njit(cache=True)
def _fill_slots(rows, row, start, end, amount):  # type: ignore[no-untyped-def]
    """Bring the slots of a row in step after that much more is held throughout [start, end)."""
    begin, width = rows.grid[0], rows.grid[1]
    low = min(SLOTS - 1, max(0, (start - begin) // width))
    high = min(SLOTS - 1, (end - 1 - begin) // width)
    for slot in range(low, high + 1):
        slot_start = begin + slot * width
        slot_end = slot_start + width if slot < SLOTS - 1 else -BEGIN
        if start <= slot_start and slot_end <= end:
            rows.slots[row, slot] = min(SLOT_MOST, rows.slots[row, slot] + amount)
            continue
        i = segment_at(rows, row, slot_start)
        last = rows.offset[row] + rows.length[row]
        peak = 0
        while i < last and rows.since[i] < slot_end:
            peak = max(peak, rows.used[i])
            i += 1
        rows.slots[row, slot] = min(SLOT_MOST, peak)


@njit(cache=True)
def earliest(rows, row, low, high, duration, amount, tenant, exclusive):  # type: ignore[no-untyped-def]
    """The first start in [low, high] at which that much more fits, or NEVER."""
    i = segment_at(rows, row, low)
    last = rows.offset[row] + rows.length[row]
    most = rows.limit[row] - amount
    if most < 0:
        return NEVER
    start = low
    while True:
        owner = rows.owner[i]
        blocked = rows.used[i] > most or (
            owner not in {ALONE, tenant} and (exclusive or rows.shut[i] > 0)
        )
        if blocked:
            if i + 1 == last or rows.since[i + 1] > high:
                return NEVER
            start = rows.since[i + 1]
        elif i + 1 == last or rows.since[i + 1] >= start + duration:
            return start
        i += 1


@njit(cache=True)
def _split(rows, row, at):  # type: ignore[no-untyped-def]
    """Make a segment begin at an instant; its index."""
    i = segment_at(rows, row, at)
    if rows.since[i] == at:
        return i
    last = rows.offset[row] + rows.length[row]
    for j in range(last, i + 1, -1):
        rows.since[j] = rows.since[j - 1]
        rows.used[j] = rows.used[j - 1]
        rows.owner[j] = rows.owner[j - 1]
        rows.shut[j] = rows.shut[j - 1]
    rows.since[i + 1] = at
    rows.used[i + 1] = rows.used[i]
    rows.owner[i + 1] = rows.owner[i]
    rows.shut[i + 1] = rows.shut[i]
    rows.length[row] += 1
    return i + 1


@njit(cache=True)
def make_room(rows, row):  # type: ignore[no-untyped-def]
    """Room for two more segments in a row; False where the pool has none left."""
    if rows.length[row] + 2 <= rows.room[row]:
        return True
    room = rows.room[row] * 2
    there = rows.pool_end[0]
    if there + room > rows.since.shape[0]:
        return False
    here = rows.offset[row]
    for j in range(rows.length[row]):
        rows.since[there + j] = rows.since[here + j]
        rows.used[there + j] = rows.used[here + j]
        rows.owner[there + j] = rows.owner[here + j]
        rows.shut[there + j] = rows.shut[here + j]
    rows.offset[row] = there
    rows.room[row] = room
    rows.pool_end[0] = there + room
    return True


@njit(cache=True)
def hold(rows, row, start, end, amount, tenant, exclusive):  # type: ignore[no-untyped-def]
    """Use that much more throughout [start, end); room was made before."""
    first = _split(rows, row, start)
    end_at = _split(rows, row, end)
    for i in range(first, end_at):
        rows.used[i] += amount
        if rows.owner[i] == ALONE:
            rows.owner[i] = tenant
        elif rows.owner[i] != tenant:
            rows.owner[i] = MIXED
        if exclusive:
            rows.shut[i] += 1
    if row < rows.slots.shape[0]:
        _fill_slots(rows, row, start, end, amount)


@njit(cache=True)
def release(rows, row, start, end, amount):  # type: ignore[no-untyped-def]
    """Use that much less throughout [start, end); room was made before.

    Segments that are alike become one; owners are not kept, so nobody may be exclusive.
    """
    first = _split(rows, row, start)
    end_at = _split(rows, row, end)
    for i in range(first, end_at):
        rows.used[i] -= amount
    _join(rows, row, end_at)
    _join(rows, row, first)
    if row < rows.slots.shape[0]:
        _fill_slots(rows, row, start, end, -amount)


@njit(cache=True)
def _join(rows, row, i):  # type: ignore[no-untyped-def]
    """Make a segment one with the one before it where as much is in use in both."""
    low = rows.offset[row]
    last = low + rows.length[row]
    if i == low or i >= last or rows.used[i] != rows.used[i - 1]:
        return
    for j in range(i, last - 1):
        rows.since[j] = rows.since[j + 1]
        rows.used[j] = rows.used[j + 1]
        rows.owner[j] = rows.owner[j + 1]
        rows.shut[j] = rows.shut[j + 1]
    rows.length[row] -= 1

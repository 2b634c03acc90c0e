"""Kernels over exact holds: for each GPU a linked list of (start, end, width, owner).

Times are whole seconds since 1970. The lists are short (tens of holds), so a walk is quicker
than any order; a new hold goes to the front, a released one leaves a free cell behind.
"""

import numpy as np
from numba import njit

from solvers.placement.rows import best_fit, lowest_bits, query, rebuild_word, set_bits

U = np.uint64
NIL = -1
WHOLE = 1000
START, END, WIDTH, OWNER, NEXT = 0, 1, 2, 3, 4
COLUMNS = 5


@njit(cache=True)
def slot_floor(second, origin, width, slots):  # type: ignore[no-untyped-def]
    """The slot in which a second lies; the first and the last slot hold all that lies beyond."""
    return min(max((second - origin) // width, 0), slots - 1)


@njit(cache=True)
def outward(start, end, origin, width, slots):  # type: ignore[no-untyped-def]
    """The slots that a span touches."""
    a = slot_floor(start, origin, width, slots)
    b = slot_floor(end - 1, origin, width, slots) + 1
    return a, b


@njit(cache=True)
def inward(start, end, origin, width, slots):  # type: ignore[no-untyped-def]
    """The slots that lie wholly inside a span; never the two that hold what lies beyond."""
    a = max((start - origin + width - 1) // width, 1)
    b = min((end - origin) // width, slots - 1)
    return a, b


@njit(cache=True)
def is_free(heads, cells, gpu, start, end):  # type: ignore[no-untyped-def]
    """Whether nothing is held on a GPU in a span."""
    at = heads[gpu]
    while at != NIL:
        if cells[at, START] < end and start < cells[at, END]:
            return False
        at = cells[at, NEXT]
    return True


@njit(cache=True)
def free_for_owner(heads, cells, gpu, start, end, owner, share):  # type: ignore[no-untyped-def]
    """What is surely free of a GPU over a span, if only this owner holds it and the share fits; else -1.

    Where all that overlaps fits together with the share, its sum decides; only where it does
    not is the peak sought, instant by instant, and the first one without room ends the search.
    """
    total = 0
    at = heads[gpu]
    while at != NIL:
        if cells[at, START] < end and start < cells[at, END]:
            if cells[at, OWNER] != owner or cells[at, WIDTH] >= WHOLE:
                return -1
            total += cells[at, WIDTH]
        at = cells[at, NEXT]
    if total + share <= WHOLE:
        return WHOLE - total
    used = 0
    at = heads[gpu]
    while at != NIL:
        if cells[at, START] < end and start < cells[at, END]:
            instant = max(cells[at, START], start)
            level = 0
            other = heads[gpu]
            while other != NIL:
                if cells[other, START] <= instant < cells[other, END]:
                    level += cells[other, WIDTH]
                other = cells[other, NEXT]
            if level + share > WHOLE:
                return -1
            used = max(used, level)
        at = cells[at, NEXT]
    return WHOLE - used


@njit(cache=True)
def push(heads, cells, gpu, cell, start, end, width, owner):  # type: ignore[no-untyped-def]
    """Put a hold on a GPU's list."""
    cells[cell, START] = start
    cells[cell, END] = end
    cells[cell, WIDTH] = width
    cells[cell, OWNER] = owner
    cells[cell, NEXT] = heads[gpu]
    heads[gpu] = cell


@njit(cache=True)
def take_off(heads, cells, gpu, start, end, width, owner):  # type: ignore[no-untyped-def]
    """Take a hold off a GPU's list; its cell, or -1 when there is no such hold."""
    before, at = NIL, heads[gpu]
    while at != NIL:
        if (
            cells[at, START] == start
            and cells[at, END] == end
            and cells[at, WIDTH] == width
            and cells[at, OWNER] == owner
        ):
            if before == NIL:
                heads[gpu] = cells[at, NEXT]
            else:
                cells[before, NEXT] = cells[at, NEXT]
            return at
        before, at = at, cells[at, NEXT]
    return NIL


@njit(cache=True)
def hold_run(heads, cells, free_cell, node, first, width, start, end, owner):  # type: ignore[no-untyped-def]
    """Put a hold on each GPU that a run touches; the next free cell, and the mask of the GPUs."""
    last, mask = first + width, 0
    for slot in range(first // WHOLE, (last + WHOLE - 1) // WHOLE):
        part = min(last, (slot + 1) * WHOLE) - max(first, slot * WHOLE)
        cell = free_cell
        free_cell = cells[cell, NEXT]
        push(heads, cells, node * 8 + slot, cell, start, end, part, owner)
        mask |= 1 << slot
    return free_cell, mask


@njit(cache=True)
def release_run(heads, cells, free_cell, node, first, width, start, end, owner):  # type: ignore[no-untyped-def]
    """The inverse of `hold_run`; a mask of 0 when some hold is not there."""
    last, mask = first + width, 0
    for slot in range(first // WHOLE, (last + WHOLE - 1) // WHOLE):
        part = min(last, (slot + 1) * WHOLE) - max(first, slot * WHOLE)
        cell = take_off(heads, cells, node * 8 + slot, start, end, part, owner)
        if cell == NIL:
            return free_cell, 0
        cells[cell, NEXT] = free_cell
        free_cell = cell
        mask |= 1 << slot
    return free_cell, mask


@njit(cache=True)
def mark(  # type: ignore[no-untyped-def]
    raw, pre, suf, sparse, node, mask, start, end, origin, width
):
    """Mark GPUs of a node busy in the slots that a span touches."""
    a, b = outward(start, end, origin, width, raw.shape[0])
    set_bits(raw, pre, suf, sparse, a, b, node >> 3, U(mask) << U((node & 7) * 8))


@njit(cache=True)
def unmark(  # type: ignore[no-untyped-def]
    raw, pre, suf, sparse, heads, cells, node, mask, start, end, origin, width
):
    """Clear GPUs of a node in the slots of a span, but where something else is held."""
    slots = raw.shape[0]
    a, b = outward(start, end, origin, width, slots)
    w, shift = node >> 3, (node & 7) * 8
    keep = ~(U(mask) << U(shift))
    for t in range(a, b):
        raw[t, w] &= keep
    for j in range(8):
        if not (mask >> j) & 1:
            continue
        bit = U(1) << U(shift + j)
        at = heads[node * 8 + j]
        while at != NIL:
            c, d = outward(cells[at, START], cells[at, END], origin, width, slots)
            for t in range(max(a, c), min(b, d)):
                raw[t, w] |= bit
            at = cells[at, NEXT]
    rebuild_word(raw, pre, suf, sparse, a, b, w)


@njit(cache=True)
def rebuild(raw, pre, suf, sparse, heads, cells, origin, width):  # type: ignore[no-untyped-def]
    """All rows anew from the holds."""
    raw[:] = U(0)
    slots = raw.shape[0]
    for gpu in range(heads.shape[0]):
        at = heads[gpu]
        bit = U(1) << U(gpu & 63)
        while at != NIL:
            a, b = outward(cells[at, START], cells[at, END], origin, width, slots)
            for t in range(a, b):
                raw[t, gpu >> 6] |= bit
            at = cells[at, NEXT]
    for w in range(raw.shape[1]):
        rebuild_word(raw, pre, suf, sparse, 0, slots, w)


@njit(cache=True)
def find_gpus(  # type: ignore[no-untyped-def]
    raw, pre, suf, sparse, heads, cells, denied, start, end, gpus, origin, width, busy, counts
):
    """A node with that many GPUs free throughout, and their mask; (-1, 0) is a proof of none."""
    slots, words = raw.shape[0], raw.shape[1]
    a, b = outward(start, end, origin, width, slots)
    query(raw, pre, suf, sparse, a, b, busy)
    for w in range(words):
        busy[w] |= denied[w]
    node = best_fit(busy, counts, gpus)
    if node >= 0:
        free = np.int64((~busy[node >> 3] >> U((node & 7) * 8)) & U(255))
        return node, lowest_bits(free, gpus)
    a, b = inward(start, end, origin, width, slots)
    if a < b:
        query(raw, pre, suf, sparse, a, b, counts)
    else:
        counts[:] = U(0)
    for w in range(words):
        maybe = ~(counts[w] | denied[w])
        if maybe == U(0):
            continue
        for k in range(8):
            byte = (maybe >> U(k * 8)) & U(255)
            left = 0
            for j in range(8):
                left += (byte >> U(j)) & U(1)
            if left < gpus:
                continue
            node, mask, found = w * 8 + k, 0, 0
            for j in range(8):
                if (byte >> U(j)) & U(1):
                    if is_free(heads, cells, node * 8 + j, start, end):
                        mask |= 1 << j
                        found += 1
                        if found == gpus:
                            return node, mask
                    else:
                        left -= 1
                        if left < gpus:
                            break
    return -1, 0


@njit(cache=True)
def find_nodes(  # type: ignore[no-untyped-def]
    raw,
    pre,
    suf,
    sparse,
    heads,
    cells,
    denied,
    start,
    end,
    wanted,
    origin,
    width,
    busy,
    counts,
    out,
):
    """Nodes that are free throughout, lowest first, into `out`; how many, at most `wanted`."""
    slots, words = raw.shape[0], raw.shape[1]
    a, b = outward(start, end, origin, width, slots)
    query(raw, pre, suf, sparse, a, b, busy)
    found = 0
    for w in range(words):
        x = busy[w] | denied[w]
        for k in range(8):
            if (x >> U(k * 8)) & U(255) == U(0):
                out[found] = w * 8 + k
                found += 1
                if found == wanted:
                    return found
    a, b = inward(start, end, origin, width, slots)
    if a < b:
        query(raw, pre, suf, sparse, a, b, counts)
    else:
        counts[:] = U(0)
    for w in range(words):
        x, sure = counts[w] | denied[w], busy[w] | denied[w]
        for k in range(8):
            byte = U(255) << U(k * 8)
            if x & byte == U(0) and sure & byte != U(0):
                node, free = w * 8 + k, True
                for j in range(8):
                    if not is_free(heads, cells, node * 8 + j, start, end):
                        free = False
                        break
                if free:
                    out[found] = node
                    found += 1
                    if found == wanted:
                        return found
    return found


@njit(cache=True)
def find_share(heads, cells, open_gpus, count, denied, start, end, owner, share):  # type: ignore[no-untyped-def]
    """The owner's GPU with the least left that still holds a share, lowest first; -1 for none."""
    best, least = -1, WHOLE + 1
    for i in range(count):
        gpu = open_gpus[i]
        if (denied[gpu >> 6] >> U(gpu & 63)) & U(1):
            continue
        free = free_for_owner(heads, cells, gpu, start, end, owner, share)
        if share <= free < WHOLE and (free < least or (free == least and gpu < best)):
            best, least = gpu, free
    return best


@njit(cache=True)
def free_at(heads, cells, denied, instant):  # type: ignore[no-untyped-def]
    """How many GPUs that are not denied are free at an instant."""
    found = 0
    for gpu in range(heads.shape[0]):
        if not (denied[gpu >> 6] >> U(gpu & 63)) & U(1):
            found += is_free(heads, cells, gpu, instant, instant + 1)
    return found


@njit(cache=True)
def busiest_slot(raw, denied, a, b):  # type: ignore[no-untyped-def]
    """The slot of [a, b) in which the most GPUs that are not denied are touched."""
    best, most = a, -1
    for t in range(a, b):
        count = 0
        for w in range(raw.shape[1]):
            x = raw[t, w] & ~denied[w]
            while x:
                x &= x - U(1)
                count += 1
        if count > most:
            best, most = t, count
    return best


@njit(cache=True)
def edges(heads, cells, column, after, before, out):  # type: ignore[no-untyped-def]
    """Starts or ends of holds in (after, before), into `out` as far as it reaches; how many."""
    found = 0
    for gpu in range(heads.shape[0]):
        at = heads[gpu]
        while at != NIL:
            edge = cells[at, column]
            if after < edge < before:
                if found == out.shape[0]:
                    return found
                out[found] = edge
                found += 1
            at = cells[at, NEXT]
    return found

"""Kernels over bit rows: one row per time slot, one byte per node, one bit per GPU, set = busy.

A query over slots [a, b) ORs four rows: the suffix of the first block, the prefix of the last,
and two rows of a sparse table over the blocks between.
"""

import numpy as np
from numba import njit

BLOCK = 16
"""Slots in a block."""

U = np.uint64
_M1, _M2, _M4 = U(0x5555555555555555), U(0x3333333333333333), U(0x0F0F0F0F0F0F0F0F)
_LOW, _HIGH = U(0x0101010101010101), U(0x8080808080808080)


@njit(cache=True)
def query(raw, pre, suf, sparse, a, b, out):  # type: ignore[no-untyped-def]
    """Busy bits of any slot in [a, b), into `out`."""
    words = out.shape[0]
    first, last = a // BLOCK, (b - 1) // BLOCK
    if first == last:
        for w in range(words):
            out[w] = raw[a, w]
        for t in range(a + 1, b):
            for w in range(words):
                out[w] |= raw[t, w]
        return
    for w in range(words):
        out[w] = suf[a, w] | pre[b - 1, w]
    low, high = first + 1, last
    if low < high:
        j = 0
        while (2 << j) <= high - low:
            j += 1
        for w in range(words):
            out[w] |= sparse[j, low, w] | sparse[j, high - (1 << j), w]


@njit(cache=True)
def set_bits(raw, pre, suf, sparse, a, b, w, mask):  # type: ignore[no-untyped-def]
    """Mark bits of one word busy over slots [a, b)."""
    for t in range(a, b):
        raw[t, w] |= mask
    first, last = a // BLOCK, (b - 1) // BLOCK
    for k in range(first, last + 1):
        for t in range(max(a, k * BLOCK), k * BLOCK + BLOCK):
            pre[t, w] |= mask
        for t in range(k * BLOCK, min(b, k * BLOCK + BLOCK)):
            suf[t, w] |= mask
    blocks = sparse.shape[1]
    for j in range(sparse.shape[0]):
        for i in range(max(0, first - (1 << j) + 1), min(last, blocks - (1 << j)) + 1):
            sparse[j, i, w] |= mask


@njit(cache=True)
def rebuild_word(raw, pre, suf, sparse, a, b, w):  # type: ignore[no-untyped-def]
    """Bring everything above the raw rows of one word in step, after slots [a, b) changed."""
    first, last = a // BLOCK, (b - 1) // BLOCK
    blocks = sparse.shape[1]
    for k in range(first, last + 1):
        acc = U(0)
        for t in range(k * BLOCK, k * BLOCK + BLOCK):
            acc |= raw[t, w]
            pre[t, w] = acc
        sparse[0, k, w] = acc
        acc = U(0)
        for t in range(k * BLOCK + BLOCK - 1, k * BLOCK - 1, -1):
            acc |= raw[t, w]
            suf[t, w] = acc
    for j in range(1, sparse.shape[0]):
        half = 1 << (j - 1)
        for i in range(max(0, first - (1 << j) + 1), min(last, blocks - (1 << j)) + 1):
            sparse[j, i, w] = sparse[j - 1, i, w] | sparse[j - 1, i + half, w]


@njit(cache=True)
def byte_counts(word):  # type: ignore[no-untyped-def]
    """In each byte, how many of its bits are set."""
    word = word - ((word >> U(1)) & _M1)
    word = (word & _M2) + ((word >> U(2)) & _M2)
    return (word + (word >> U(4))) & _M4


@njit(cache=True)
def best_fit(busy, counts, gpus):  # type: ignore[no-untyped-def]
    """The node with the fewest free GPUs that suffice, lowest first; -1 when there is none."""
    words = busy.shape[0]
    for w in range(words):
        counts[w] = byte_counts(~busy[w])
    for free in range(gpus, 9):
        pattern = U(free) * _LOW
        for w in range(words):
            x = counts[w] ^ pattern
            if (x - _LOW) & ~x & _HIGH:
                for k in range(8):
                    if (x >> U(k * 8)) & U(255) == U(0):
                        return w * 8 + k
    return -1


@njit(cache=True)
def lowest_bits(free, count):  # type: ignore[no-untyped-def]
    """The `count` lowest bits that are set in a byte."""
    mask = 0
    for j in range(8):
        if (free >> j) & 1 and count > 0:
            mask |= 1 << j
            count -= 1
    return mask

"""Proofs made from tiles: a few hashes out of a log of any length (RFC 6962 section 2.1).

The root of 2^n leaves that begin at a multiple of 2^n is one hash of a tile, or the root of a few
that stand side by side in one. Whatever a proof needs is such a root or is made of them.
"""

from collections.abc import Callable

from domain.merkle import HASH_BYTES, TILE_HEIGHT, Tree, node_hash, row_root

Row = Callable[[int, int, int], bytes]
"""Hashes of a tile level: from level, first index and count, as bytes."""
TileAt = Callable[[int, int], bytes]
"""The hashes of a full tile, by level and index."""


class NoSuchSize(ValueError):
    """The log never had a size, or has no such event; the words say which."""


def row_of(tree: Tree, tile_at: TileAt) -> Row:
    """The hashes of a log whose tree is known: full tiles from a store, the rest from the tree."""

    def row(level: int, first: int, count: int) -> bytes:
        index, at = first >> TILE_HEIGHT, first % (1 << TILE_HEIGHT)
        is_full = (index + 1) << TILE_HEIGHT * (level + 1) <= tree.size
        hashes = tile_at(level, index) if is_full else tree.pending[level]
        return hashes[at * HASH_BYTES : (at + count) * HASH_BYTES]

    return row


def subtree(row: Row, low: int, high: int) -> bytes:
    """The root over the leaves of [low, high), a subtree as RFC 6962 splits them."""
    count = high - low
    if count & (count - 1) == 0 and low % count == 0:
        return _aligned(row, count.bit_length() - 1, low // count)
    split = low + _split(count)
    return node_hash(subtree(row, low, split), subtree(row, split, high))


def _aligned(row: Row, height: int, index: int) -> bytes:
    """The root over 2^height leaves that begin at a multiple of it."""
    level, rest = divmod(height, TILE_HEIGHT)
    hashes = row(level, index << rest, 1 << rest)
    assert len(hashes) == HASH_BYTES << rest, "the tree has what its size says"
    return row_root(hashes)


def _split(count: int) -> int:
    """The largest power of two that is smaller than a count."""
    return 1 << ((count - 1).bit_length() - 1)


def inclusion(row: Row, index: int, size: int) -> list[bytes]:
    """The audit path of a leaf in the tree of a size, from the leaf up. Raises `NoSuchSize`."""
    if not 0 <= index < size:
        raise NoSuchSize(f"a log of {size} events has none at index {index}")
    path: list[bytes] = []
    low, high = 0, size
    while high - low > 1:
        split = low + _split(high - low)
        if index < split:
            path.append(subtree(row, split, high))
            high = split
        else:
            path.append(subtree(row, low, split))
            low = split
    return path[::-1]


def consistency(row: Row, earlier: int, later: int) -> list[bytes]:
    """What leads from the root of an earlier size to that of a later one. Raises `NoSuchSize`."""
    if not 0 <= earlier <= later:
        raise NoSuchSize(f"a log of {later} events never had {earlier}")
    if earlier in {0, later}:
        return []
    path: list[bytes] = []
    low, high, is_known = 0, later, True
    while earlier != high:
        split = low + _split(high - low)
        if earlier <= split:
            path.append(subtree(row, split, high))
            high = split
        else:
            path.append(subtree(row, low, split))
            low, is_known = split, False
    if not is_known:
        path.append(subtree(row, low, high))
    return path[::-1]

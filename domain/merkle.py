"""The Merkle tree over the log: RFC 6962 hashes, its growing frontier, and full tiles.

The tree's state between two commits is small: for each level the hashes that wait for their
tile (C2SP tlog-tiles, height 8: 256 hashes each). From them the root follows, and a tile is
written by the commit that completes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

HASH_BYTES = 32
TILE_HEIGHT = 8
TILE_HASHES = 1 << TILE_HEIGHT
EMPTY_ROOT = sha256().digest()


def leaf_hash(data: bytes) -> bytes:
    """The hash of a leaf: SHA-256(0x00 || data), RFC 6962 section 2.1."""
    return sha256(b"\0" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node: SHA-256(0x01 || left || right)."""
    return sha256(b"\1" + left + right).digest()


@dataclass(frozen=True, slots=True)
class FullTile:
    """256 hashes of one tile level, in order; their root is one hash of the level above."""

    level: int
    index: int
    hashes: bytes


@dataclass(frozen=True, slots=True)
class Tree:
    """The state of a log's tree: its size, and at each tile level the hashes not yet tiled."""

    size: int = 0
    pending: tuple[bytes, ...] = ()

    def grown(self, leaves: Sequence[bytes]) -> "tuple[Tree, list[FullTile]]":
        """The tree with further leaf hashes, and the tiles that they completed."""
        tiles: list[FullTile] = []
        pending = list(self.pending)
        fresh = b"".join(leaves)
        level = 0
        while fresh:
            if level == len(pending):
                pending.append(b"")
            index = (self.size >> TILE_HEIGHT * level) // TILE_HASHES
            row = pending[level] + fresh
            fresh = b""
            full = len(row) // (TILE_HASHES * HASH_BYTES)
            for nth in range(full):
                hashes = row[nth * TILE_HASHES * HASH_BYTES : (nth + 1) * TILE_HASHES * HASH_BYTES]
                tiles.append(FullTile(level, index + nth, hashes))
                fresh += row_root(hashes)
            pending[level] = row[full * TILE_HASHES * HASH_BYTES :]
            level += 1
        return Tree(self.size + len(leaves), tuple(pending)), tiles

    @property
    def root(self) -> bytes:
        """The hash of the whole tree; of nothing, the hash of no bytes."""
        peaks: list[bytes] = []
        for row in reversed(self.pending):
            peaks += _peaks_of(row)
        if not peaks:
            return EMPTY_ROOT
        root = peaks.pop()
        while peaks:
            root = node_hash(peaks.pop(), root)
        return root

    def to_bytes(self) -> bytes:
        """As it stands in the head of the log: the size, then each level's hashes by length."""
        parts = [self.size.to_bytes(8, "big")]
        for row in self.pending:
            parts += [(len(row) // HASH_BYTES).to_bytes(2, "big"), row]
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Tree":
        """The inverse of `to_bytes`; no bytes are the empty tree."""
        if not data:
            return cls()
        size, at = int.from_bytes(data[:8], "big"), 8
        pending: list[bytes] = []
        while at < len(data):
            length = int.from_bytes(data[at : at + 2], "big") * HASH_BYTES
            pending.append(data[at + 2 : at + 2 + length])
            at += 2 + length
        return cls(size, tuple(pending))


def _hashes_of(row: bytes) -> list[bytes]:
    return [row[at : at + HASH_BYTES] for at in range(0, len(row), HASH_BYTES)]


def row_root(row: bytes) -> bytes:
    """The root over a power of two of hashes that stand side by side."""
    hashes = _hashes_of(row)
    while len(hashes) > 1:
        hashes = [node_hash(hashes[at], hashes[at + 1]) for at in range(0, len(hashes), 2)]
    return hashes[0]


def _peaks_of(row: bytes) -> list[bytes]:
    """The roots of the full subtrees of a row, largest first."""
    count, at = len(row) // HASH_BYTES, 0
    peaks: list[bytes] = []
    while count:
        span = 1 << (count.bit_length() - 1)
        peaks.append(row_root(row[at * HASH_BYTES : (at + span) * HASH_BYTES]))
        at += span
        count -= span
    return peaks


def root_of(leaves: Sequence[bytes]) -> bytes:
    """The root over leaf hashes by the definition of RFC 6962, to compare with."""
    if not leaves:
        return EMPTY_ROOT
    if len(leaves) == 1:
        return leaves[0]
    split = 1 << ((len(leaves) - 1).bit_length() - 1)
    return node_hash(root_of(leaves[:split]), root_of(leaves[split:]))


def inclusion_proof(index: int, leaves: Sequence[bytes]) -> list[bytes]:
    """The audit path of a leaf, from the leaf up (RFC 6962 section 2.1.1)."""
    if len(leaves) <= 1:
        return []
    split = 1 << ((len(leaves) - 1).bit_length() - 1)
    if index < split:
        return [*inclusion_proof(index, leaves[:split]), root_of(leaves[split:])]
    return [*inclusion_proof(index - split, leaves[split:]), root_of(leaves[:split])]


def is_included(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether a proof shows that a leaf is at an index of the tree of a size and root."""
    if not 0 <= index < size:
        return False
    node, last, digest = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return False
        if node & 1 or node == last:
            digest = node_hash(sibling, digest)
            while not node & 1 and node:
                node >>= 1
                last >>= 1
        else:
            digest = node_hash(digest, sibling)
        node >>= 1
        last >>= 1
    return last == 0 and digest == root

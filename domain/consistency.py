"""Consistency of a log with its own past: that a later tree only ever added to an earlier one.

RFC 6962 section 2.1.2 makes the proof, RFC 9162 section 2.1.4.2 checks it.
"""

from collections.abc import Sequence

from domain.merkle import EMPTY_ROOT, node_hash, root_of


def consistency_proof(earlier: int, leaves: Sequence[bytes]) -> list[bytes]:
    """The hashes that lead from the root over the first `earlier` leaf hashes to that over all.

    Empty when the earlier tree is empty or the same. Raises ValueError for a size that never was.
    """
    if not 0 <= earlier <= len(leaves):
        raise ValueError(f"a tree of {len(leaves)} leaves never had {earlier}")
    if earlier in {0, len(leaves)}:
        return []
    return _subproof(earlier, leaves, is_known=True)


def _subproof(earlier: int, leaves: Sequence[bytes], *, is_known: bool) -> list[bytes]:
    """SUBPROOF of RFC 6962; `is_known` says that whoever checks already has this subtree's root."""
    if earlier == len(leaves):
        return [] if is_known else [root_of(leaves)]
    split = 1 << ((len(leaves) - 1).bit_length() - 1)
    if earlier <= split:
        left = _subproof(earlier, leaves[:split], is_known=is_known)
        return [*left, root_of(leaves[split:])]
    right = _subproof(earlier - split, leaves[split:], is_known=False)
    return [*right, root_of(leaves[:split])]


def is_consistent(
    earlier: int, earlier_root: bytes, later: int, later_root: bytes, proof: Sequence[bytes]
) -> bool:
    """Whether a proof shows that the tree of `later` leaves begins with that of `earlier` ones."""
    if not 0 <= earlier <= later:
        return False
    if earlier == 0:
        return not proof and earlier_root == EMPTY_ROOT
    if earlier == later:
        return not proof and earlier_root == later_root
    path = list(proof)
    if earlier & (earlier - 1) == 0:
        path.insert(0, earlier_root)
    if not path:
        return False
    node, last = earlier - 1, later - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    return _leads_to_both(path, node, last, (earlier_root, later_root))


def _leads_to_both(path: Sequence[bytes], node: int, last: int, roots: tuple[bytes, bytes]) -> bool:
    """Whether hashing up a path from a node beside the last one ends in both roots."""
    before = after = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if node & 1 or node == last:
            before, after = node_hash(sibling, before), node_hash(sibling, after)
            while node and not node & 1:
                node, last = node >> 1, last >> 1
        else:
            after = node_hash(after, sibling)
        node, last = node >> 1, last >> 1
    return last == 0 and (before, after) == roots

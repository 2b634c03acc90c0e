"""The growing tree against the recursive definition, and proofs against forgeries."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.consistency import consistency_proof, is_consistent
from domain.merkle import (
    HASH_BYTES,
    TILE_HASHES,
    FullTile,
    Tree,
    inclusion_proof,
    is_included,
    leaf_hash,
    root_of,
)


def _leaves(count: int) -> list[bytes]:
    return [leaf_hash(b"%d" % nth) for nth in range(count)]


def _grown(leaves: Sequence[bytes], cuts: Sequence[int]) -> tuple[Tree, list[FullTile]]:
    tree, tiles, at = Tree(), [], 0
    for cut in [*sorted(cuts), len(leaves)]:
        tree, finished = tree.grown(leaves[at : max(at, cut)])
        tiles += finished
        at = max(at, cut)
    return tree, tiles


SIZES = st.integers(0, 1300)
CUTS = st.lists(SIZES, max_size=5)


@settings(deadline=None, max_examples=50)
@given(SIZES, CUTS)
def test_however_it_grew_the_root_is_that_of_the_definition(size: int, cuts: list[int]) -> None:
    leaves = _leaves(size)
    tree, tiles = _grown(leaves, [min(cut, size) for cut in cuts])
    assert (tree.size, tree.root) == (size, root_of(leaves))
    at_once, tiles_at_once = Tree().grown(leaves)
    assert tree == at_once
    assert len(tiles) == len(tiles_at_once)
    assert set(tiles) == set(tiles_at_once)


@settings(deadline=None, max_examples=50)
@given(SIZES, CUTS)
def test_tiles_and_what_waits_for_them_hold_every_leaf_once(size: int, cuts: list[int]) -> None:
    leaves = _leaves(size)
    tree, tiles = _grown(leaves, [min(cut, size) for cut in cuts])
    lowest = [tile for tile in tiles if tile.level == 0]
    assert [tile.index for tile in lowest] == list(range(size // TILE_HASHES))
    held = b"".join(tile.hashes for tile in lowest) + (tree.pending[0] if tree.pending else b"")
    assert held == b"".join(leaves)


def test_the_tile_of_a_level_is_made_of_the_roots_of_the_tiles_below() -> None:
    leaves = _leaves(TILE_HASHES * TILE_HASHES)
    tree, tiles = Tree().grown(leaves)
    (above,) = (tile for tile in tiles if tile.level == 1)
    roots = [
        root_of(
            [tile.hashes[at : at + HASH_BYTES] for at in range(0, len(tile.hashes), HASH_BYTES)]
        )
        for tile in tiles
        if tile.level == 0
    ]
    assert (above.index, above.hashes) == (0, b"".join(roots))
    assert tree.pending == (b"", b"", root_of(roots))
    assert tree.root == root_of(leaves)


@settings(deadline=None)
@given(SIZES)
def test_a_tree_survives_its_bytes(size: int) -> None:
    tree, _ = Tree().grown(_leaves(size))
    assert Tree.from_bytes(tree.to_bytes()) == tree


@settings(deadline=None)
@given(st.data())
def test_a_leaf_is_proven_where_it_is_and_nowhere_else(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 70))
    index = data.draw(st.integers(0, size - 1))
    leaves = _leaves(size)
    root = root_of(leaves)
    proof = inclusion_proof(index, leaves)
    assert is_included(leaves[index], index, size, proof, root)
    elsewhere = data.draw(st.integers(-1, size))
    assert is_included(leaves[index], elsewhere, size, proof, root) == (elsewhere == index)
    assert not is_included(leaf_hash(b"forged"), index, size, proof, root)
    assert not is_included(leaves[index], index, size, [*proof, root], root)
    assert not proof or not is_included(leaves[index], index, size, proof[:-1], root)


@settings(deadline=None)
@given(st.data())
def test_a_log_is_consistent_with_its_past_and_with_no_other(data: st.DataObject) -> None:
    later = data.draw(st.integers(1, 70))
    earlier = data.draw(st.integers(1, later))
    leaves = _leaves(later)
    old, new = root_of(leaves[:earlier]), root_of(leaves)
    proof = consistency_proof(earlier, leaves)
    assert is_consistent(earlier, old, later, new, proof)
    altered = [leaf_hash(b"altered"), *leaves[1:]]
    assert not is_consistent(earlier, root_of(altered[:earlier]), later, new, proof)
    assert not is_consistent(earlier, old, later, root_of(altered), proof)
    assert not is_consistent(earlier, old, later, new, [*proof, new])
    assert not proof or not is_consistent(earlier, old, later, new, proof[:-1])

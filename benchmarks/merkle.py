"""The Merkle tree: what it adds to a commit, and proofs of a long log made and checked.

The raw limit of growing is the bare loop over the same batches, written to PostgreSQL.
"""

import gc
import time
from collections.abc import Callable, Sequence
from random import Random
from statistics import median

from benchmarks.figures import SEED, Figure, database, main
from benchmarks.journal import batches, raw_seconds
from connectors.keys.signing import Signer, verified
from connectors.postgres.journal import PostgresJournal
from domain.consistency import is_consistent
from domain.merkle import FullTile, Tree, is_included, leaf_hash
from domain.proofs import consistency, inclusion, row_of, subtree

LEAVES = 1_000_000
PROOFS = 500
BATCH, BATCHES = 512, 60


def _ms(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1e3


def _worst(taken: list[float]) -> float:
    return sorted(taken)[int(len(taken) * 0.99)]


def _commit_share() -> tuple[float, float]:
    """Seconds that the tree takes for some batches, and those of the bare loop that writes them."""
    with database() as dsn:
        journal = PostgresJournal(dsn)
        head = journal.take_lease("bench")
        stream = batches(head, BATCH)
        made = [next(stream) for _ in range(BATCHES)]
        bare = raw_seconds(dsn, made, head.epoch)
        journal.close()
    tree = Tree.from_bytes(head.tree)
    begun = time.perf_counter()
    for batch in made:
        tree, _ = tree.grown([event.leaf for event in batch.events])
        tree.to_bytes()
    return time.perf_counter() - begun, bare


def measure() -> Sequence[Figure]:
    """Growing, proving, checking, signing."""
    random = Random(SEED)
    leaves = [leaf_hash(n.to_bytes(8, "big")) for n in range(LEAVES)]
    tree, tiles = Tree().grown(leaves)
    known: dict[tuple[int, int], FullTile] = {(t.level, t.index): t for t in tiles}
    row = row_of(tree, lambda level, index: known[level, index].hashes)
    root = tree.root
    gc.freeze()
    made, checked = [], []
    for _ in range(PROOFS):
        index, earlier = random.randrange(LEAVES), random.randrange(1, LEAVES)
        made.append(_ms(lambda at=index: inclusion(row, at, LEAVES)))  # type: ignore[misc]
        made.append(_ms(lambda at=earlier: consistency(row, at, LEAVES)))  # type: ignore[misc]
        path, proof = inclusion(row, index, LEAVES), consistency(row, earlier, LEAVES)
        before = subtree(row, 0, earlier)
        begun = time.perf_counter()
        assert is_included(leaves[index], index, LEAVES, path, root)
        assert is_consistent(earlier, before, LEAVES, root, proof)
        checked.append((time.perf_counter() - begun) * 1e3 / 2)
    signer = Signer.of("bench/shard/0", b"s" * 32)
    signing = [_ms(lambda: verified(signer.sign(LEAVES, root), signer.key)) for _ in range(PROOFS)]
    grown, bare = _commit_share()
    return [
        Figure("merkle.share-of-commit", grown / bare, "x", 0.10, is_most=True),
        Figure("merkle.proof-made", median(made), "ms", 1, is_most=True),
        Figure("merkle.proof-made-p99", _worst(made), "ms"),
        Figure("merkle.proof-checked", median(checked), "ms", 1, is_most=True),
        Figure("merkle.proof-checked-p99", _worst(checked), "ms"),
        Figure("merkle.signed-and-verified", median(signing), "ms"),
        Figure("merkle.leaves", LEAVES, "events"),
    ]


if __name__ == "__main__":
    main(measure, __doc__ or "")

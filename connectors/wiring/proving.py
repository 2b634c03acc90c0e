"""Proofs of a log in PostgreSQL: from its head, its full tiles and one leaf."""

from functools import lru_cache
from hashlib import sha256
from threading import Lock

from connectors.http.proofs import Consistency, Inclusion
from connectors.keys.signing import Signer
from connectors.postgres.journal import JournalReader
from domain.merkle import Tree
from domain.proofs import NoSuchSize, Row, consistency, inclusion, row_of, subtree

SIGNING = "checkpoint"
"""The secret of a data folder that signs checkpoints."""
TILES_KEPT = 4_096
"""Full tiles that are kept in memory, 8 KiB each: they never change."""


def signer_of(seed: bytes, shard: int = 0) -> Signer:
    """The log's signer. Its origin follows from the key, so no two logs have the same one."""
    unnamed = Signer.of("gpuledger", seed)
    name = sha256(unnamed.key.public).hexdigest()[:16]
    return Signer.of(f"gpuledger.{name}/shard/{shard}", seed)


def tree_of(log: JournalReader) -> Tree:
    """The tree of a log as it is now. Raises `JournalUnavailable`."""
    head = log.head()
    return Tree.from_bytes(head.tree if head else b"")


class LogProver:
    """Makes proofs for many callers, one after the other."""

    def __init__(self, dsn: str, signer: Signer) -> None:
        """Connect when it is first asked."""
        self._reader = JournalReader(dsn)
        self._signer = signer
        self._one = Lock()
        self._tile = lru_cache(TILES_KEPT)(self._reader.tile)

    def verifier_key(self) -> str:
        """The public key, as `name+id+key`."""
        return self._signer.key.text()

    def checkpoint(self) -> str:
        """The signed note of the log as it is now. Raises `JournalUnavailable`."""
        with self._one:
            tree = tree_of(self._reader)
        return self._signer.sign(tree.size, tree.root)

    def inclusion(self, seq: int, size: int | None) -> Inclusion:
        """Of an event in the log of a size. Raises `JournalUnavailable`, `NoSuchSize`."""
        with self._one:
            row, size = self._at(size)
            if not 0 < seq <= size:
                raise NoSuchSize(f"a log of {size} events has no event {seq}")
            path = inclusion(row, seq - 1, size)
            return Inclusion(seq, size, row(0, seq - 1, 1), subtree(row, 0, size), path)

    def consistency(self, earlier: int, size: int | None) -> Consistency:
        """Of an earlier size with a later one. Raises `JournalUnavailable`, `NoSuchSize`."""
        with self._one:
            row, size = self._at(size)
            path = consistency(row, earlier, size)
            before = subtree(row, 0, earlier) if earlier else Tree().root
            return Consistency(earlier, before, size, subtree(row, 0, size), path)

    def _at(self, size: int | None) -> tuple[Row, int]:
        tree = tree_of(self._reader)
        size = tree.size if size is None else size
        if not 0 < size <= tree.size:
            raise NoSuchSize(f"the log has {tree.size} events, and never had {size}")
        return row_of(tree, self._tile), size

    def close(self) -> None:
        """Let go of the connection."""
        self._reader.close()

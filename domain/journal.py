"""The port of the journal: one transaction per batch, and what can go wrong with it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from domain.record import IngressPlace
from domain.timespan import Instant


class Fenced(Exception):
    """Another writer holds the shard: this one must stop, at once and for good."""


class CellsOverlap(Exception):
    """The exclusion constraint refused the batch: some command of it is poison."""


class JournalUnavailable(Exception):
    """The journal cannot be reached; nothing of the batch was written."""


class CommitUnknown(Exception):
    """The connection died in COMMIT: `Journal.resolve` tells whether the batch is there."""


@dataclass(frozen=True, slots=True)
class Head:
    """Where a shard's log ends: its last position and time, its writer's epoch, its tree."""

    shard: int
    seq: int
    epoch: int
    recorded_at: Instant
    tree: bytes
    """The Merkle state, as `domain.merkle` writes it; empty for an empty log."""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One event as it lies in the journal: bytes, and the columns that queries need."""

    seq: int
    type: str
    """The schema's name and version, such as `NodeJoined.v1`."""
    stream: str
    stream_version: int
    recorded_at: Instant
    envelope: bytes
    body: bytes
    leaf: bytes


@dataclass(frozen=True, slots=True)
class Claim:
    """An idempotency key that was used, and the outcome that it will have for ever."""

    scope: str
    key: str
    command_id: bytes
    fingerprint: bytes
    seq_from: int
    seq_to: int


@dataclass(frozen=True, slots=True)
class Cell:
    """An entitlement as the exclusion constraint sees it: fleet-wide milli-GPU x time."""

    first_milli: int
    end_milli: int
    start: Instant
    end: Instant


@dataclass(frozen=True, slots=True)
class Tile:
    """A full tile of the Merkle tree: 256 hashes of one level."""

    level: int
    index: int
    hashes: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """All that one commit writes, or nothing of it. `previous` must still be the head."""

    previous: Head
    head: Head
    events: Sequence[StoredEvent]
    claims: Sequence[Claim]
    cells_removed: Sequence[Cell]
    cells_added: Sequence[Cell]
    tiles: Sequence[Tile]
    ingress: Sequence[IngressPlace]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The ledger's state at a position, as bytes; a cache with a hash, never the truth."""

    seq: int
    state: bytes
    state_hash: bytes


class Log(Protocol):
    """The reading side of a shard's journal."""

    def read(self, after: int, limit: int) -> Sequence[StoredEvent]:
        """Events behind a position, in order, at most `limit`."""
        ...

    def read_all(self, after: int) -> Iterator[StoredEvent]:
        """Events behind a position up to the present head, in order."""
        ...

    def newest_snapshot(self, fingerprint: bytes) -> Snapshot | None:
        """The newest snapshot whose format bears this fingerprint."""
        ...


class Journal(Log, Protocol):
    """The truth for accepted events of one shard."""

    def take_lease(self, holder: str) -> Head:
        """Become the writer under a new epoch, once the former lease is released or expired.

        The head that is returned carries the new epoch. Raises `JournalUnavailable`.
        """
        ...

    def renew_lease(self) -> None:
        """Stay the writer for another term. Raises `Fenced`, `JournalUnavailable`."""
        ...

    def release_lease(self) -> None:
        """Let the next writer in without a wait."""
        ...

    def claims(self, keys: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], Claim]:
        """Those of the (scope, key) pairs that were used before."""
        ...

    def append(self, batch: Batch) -> None:
        """Write a batch in one transaction.

        Raises `Fenced`, `CellsOverlap`, `JournalUnavailable` (nothing was written)
        or `CommitUnknown`.
        """
        ...

    def resolve(self, batch: Batch) -> bool:
        """After `CommitUnknown`: whether the batch is in the journal, read from head and claims."""
        ...

    def save_snapshot(self, snapshot: Snapshot, fingerprint: bytes) -> None:
        """Keep a snapshot, and forget all but the newest few."""
        ...

"""Batches for journals, valid by default: nothing of the domain is needed to write bytes."""

from collections.abc import Sequence
from dataclasses import replace

from domain.journal import Batch, Cell, Claim, Head, StoredEvent, Tile
from domain.merkle import Tree, leaf_hash
from domain.record import IngressPlace
from domain.timespan import Instant

NOON = Instant(1_764_590_400_000_000)
HOUR = 3_600_000_000


def event(seq: int, *, stream: str = "", version: int = 1, body: bytes = b"body") -> StoredEvent:
    """An event at a position, in a stream of its own unless one is named."""
    envelope = b"envelope %d" % seq
    return StoredEvent(
        seq,
        "NodeJoined.v1",
        stream or f"node-{seq}",
        version,
        Instant(NOON + seq),
        envelope,
        body,
        leaf_hash(envelope + body),
    )


def claim(key: str, seq_from: int, seq_to: int | None = None, scope: str = "tenant-a") -> Claim:
    """A used key and the positions of its outcome."""
    identity = key.encode().ljust(16, b".")[:16]
    return Claim(scope, key, identity, b"fingerprint", seq_from, seq_to or seq_from)


def cell(first_gpu: int, gpus: int = 1, hours: tuple[int, int] = (0, 1)) -> Cell:
    """Whole GPUs of the fleet over whole hours from noon."""
    return Cell(
        first_gpu * 1000,
        (first_gpu + gpus) * 1000,
        Instant(NOON + hours[0] * HOUR),
        Instant(NOON + hours[1] * HOUR),
    )


def batch(
    previous: Head,
    events: int = 1,
    *,
    keys: Sequence[str] = (),
    added: Sequence[Cell] = (),
    removed: Sequence[Cell] = (),
    ingress: Sequence[IngressPlace] = (),
) -> Batch:
    """The next so many events after a head; every key claims the first of them."""
    written = [event(seq) for seq in range(previous.seq + 1, previous.seq + events + 1)]
    return batch_of(previous, written, keys=keys, added=added, removed=removed, ingress=ingress)


def batch_of(
    previous: Head,
    events: Sequence[StoredEvent],
    *,
    keys: Sequence[str] = (),
    added: Sequence[Cell] = (),
    removed: Sequence[Cell] = (),
    ingress: Sequence[IngressPlace] = (),
) -> Batch:
    """A batch of given events, with the head and the tiles that follow from them."""
    tree, tiles = Tree.from_bytes(previous.tree).grown([e.leaf for e in events])
    head = replace(
        previous,
        seq=events[-1].seq if events else previous.seq,
        recorded_at=events[-1].recorded_at if events else previous.recorded_at,
        tree=tree.to_bytes(),
    )
    return Batch(
        previous,
        head,
        list(events),
        [claim(key, previous.seq + 1) for key in keys],
        list(removed),
        list(added),
        [Tile(tile.level, tile.index, tile.hashes) for tile in tiles],
        list(ingress),
    )

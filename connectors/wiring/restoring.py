"""An empty database from the topic alone, or one that is behind it, up to its end."""

from collections.abc import Callable
from dataclasses import dataclass

from connectors.kafka import topics
from connectors.kafka.reader import EventReader, Position
from connectors.kafka.settings import KafkaSettings, settings_from
from connectors.kafka.tail import Tail, tail_of
from connectors.postgres.journal import JournalReader, PostgresJournal
from connectors.postgres.marks import PostgresMarks
from connectors.postgres.migrate import migrate
from connectors.postgres.projecting import Follower
from connectors.sequencer.opening import replay, restore
from connectors.sequencer.restoring import Restoring
from domain.journal import Snapshot, StoredEvent
from domain.ledger import Ledger
from domain.relaying import Mark
from projections.catalogue import all_projections
from schemas.image import IMAGE_FORMAT, hash_of, image_of, pack
from schemas.registry import registry

Tell = Callable[[int, int], None]
"""Hears how many events are there, and how many there will be."""


class RestoreRefused(Exception):
    """Nothing can be restored; the words say why and what to do."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore came to."""

    events: int
    restored: int
    """Of which so many were written now."""
    epoch: int
    root: str
    state_hash: str
    checks: dict[str, bool]
    claims_lost: int
    unknown_after: int
    """What was acknowledged behind this position and never relayed cannot be known."""


def restore_from_kafka(dsn: str, *, catch_up: bool, tell: Tell) -> Restored:
    """Rebuild a log, its claims, offsets, snapshot and read models from `events.v1`.

    Raises `RestoreRefused`, `Gap`, `Foreign`, `KafkaNotConfigured`, kafka-python's `KafkaError`,
    `JournalUnavailable`.
    """
    settings = settings_from()
    migrate(dsn)
    tail = tail_of(settings, settings.prefix + topics.EVENTS, 0)
    if tail is None:
        raise RestoreRefused(f"{settings.prefix}{topics.EVENTS} holds no event")
    before = _before(dsn, catch_up=catch_up)
    _let_write(dsn)
    journal = PostgresJournal(dsn)
    try:
        journal.raise_epoch_to(tail.epoch)
        head = journal.take_lease("restore")
        ledger, _ = restore(journal, registry(), 0)
        restoring = Restoring(journal, registry(), ledger, head)
        epoch = head.epoch
        _copy(settings, restoring, journal, tail, tell)
        state = image_of(restoring.ledger)
        snapshot = Snapshot(restoring.head.seq, pack(state), hash_of(state))
        journal.save_snapshot(snapshot, IMAGE_FORMAT)
        journal.release_lease()
    finally:
        journal.close()
    _settle_relay(dsn, settings, tail)
    _project(dsn, restoring.head.seq)
    return Restored(
        restoring.head.seq,
        restoring.head.seq - before,
        epoch,
        restoring.tree.root.hex(),
        snapshot.state_hash.hex(),
        _checks(dsn, restoring, snapshot),
        restoring.claims_lost,
        restoring.head.seq,
    )


def _let_write(dsn: str) -> None:
    """Whatever halted the writer is what is mended now."""
    marks = PostgresMarks(dsn)
    try:
        marks.resume()
    finally:
        marks.close()


def _before(dsn: str, *, catch_up: bool) -> int:
    """How much is there already. Raises `RestoreRefused` when that is not what was asked for."""
    reader = JournalReader(dsn)
    try:
        head = reader.head()
    finally:
        reader.close()
    seq = head.seq if head else 0
    if seq and not catch_up:
        raise RestoreRefused(
            f"the database holds {seq} events; give an empty one, or --catch-up to mend this one"
        )
    return seq


def _copy(
    settings: KafkaSettings,
    restoring: Restoring,
    journal: PostgresJournal,
    tail: Tail,
    tell: Tell,
) -> None:
    """Every event behind the head; what is there already must be the same."""
    there = restoring.head.seq
    if there > tail.event.seq:
        raise RestoreRefused(
            f"the database holds {there} events and the topic {tail.event.seq}: it is ahead, the "
            "relay will catch up"
        )
    with EventReader(settings, start=Position()) as reader:
        for events in reader.read_all():
            if events[0].seq <= there:
                _must_be_same(journal, events)
            fresh = [event for event in events if event.seq > there]
            if fresh:
                restoring.append(fresh, is_last=fresh[-1].seq == tail.event.seq)
            tell(events[-1].seq, tail.event.seq)


def _must_be_same(journal: PostgresJournal, events: list[StoredEvent]) -> None:
    stored = journal.read(events[0].seq - 1, len(events))
    for event, other in zip(events, stored, strict=False):
        if event.leaf != other.leaf:
            raise RestoreRefused(
                f"fork: event {event.seq} in the database is another one than on the topic; what "
                "was written there after the fork is not on the topic. Restore into an empty one"
            )


def _settle_relay(dsn: str, settings: KafkaSettings, tail: Tail) -> None:
    """The relay goes on behind the tail."""
    marks = PostgresMarks(dsn)
    try:
        marks.move(Mark(tail.event.seq, tail.epoch, topics.topic_id(settings, topics.EVENTS)))
    finally:
        marks.close()


def _project(dsn: str, seq: int) -> None:
    follower = Follower(dsn, registry(), all_projections(), snapshots=False)
    follower.catch_up(seq)
    follower.close()


def _checks(dsn: str, restoring: Restoring, kept: Snapshot) -> dict[str, bool]:
    """The database read back: its events by themselves give the same root and the same state."""
    reader = JournalReader(dsn)
    try:
        ledger = Ledger(shard=0)
        replay(reader.read_all(0), registry(), ledger, 0)
        head = reader.head()
        snapshot = reader.newest_snapshot(IMAGE_FORMAT)
    finally:
        reader.close()
    assert head is not None, "it was restored"
    return {
        "root_equal": head.tree == restoring.tree.to_bytes(),
        "replay_equal": hash_of(image_of(ledger)) == kept.state_hash,
        "snapshot_equal": snapshot is not None and snapshot.state_hash == kept.state_hash,
    }

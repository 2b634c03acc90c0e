"""Opening a shard: the lease, the newest snapshot, the events after it, the placer's index."""

from collections.abc import Callable, Iterable

import structlog

from connectors.sequencer.engine import Sequencer
from domain.decide.transcript import tell_all
from domain.evolve import evolve
from domain.facts.shard import LeaseTaken
from domain.journal import Journal, Log, StoredEvent
from domain.ledger import Ledger
from domain.timespan import Instant
from schemas.envelope import decode_envelope
from schemas.image import IMAGE_FORMAT, ledger_from, unpack
from schemas.registry import Registry
from solvers.placer import LedgerPlacer

_log = structlog.get_logger("sequencer")


def open_sequencer(
    journal: Journal,
    registry: Registry,
    *,
    holder: str,
    secret: bytes,
    clock: Callable[[], Instant] | None,
) -> Sequencer:
    """Become the shard's writer and know everything that its log says.

    Raises `JournalUnavailable`.
    """
    head = journal.take_lease(holder)
    ledger, seq = restore(journal, registry, head.shard)
    assert seq == head.seq, "the log ends where its head says"
    placer = LedgerPlacer(head.recorded_at)
    tell_all(placer, ledger)
    sequencer = Sequencer(journal, ledger, placer, registry, head, secret, clock)
    sequencer.record(LeaseTaken(head.shard, head.epoch, holder), "lease")
    _log.info("shard_opened", shard=head.shard, seq=head.seq, epoch=head.epoch)
    return sequencer


def restore(journal: Log, registry: Registry, shard: int) -> tuple[Ledger, int]:
    """The ledger at the head of a log, from the newest snapshot on, and that position."""
    ledger, seq = Ledger(shard=shard), 0
    snapshot = journal.newest_snapshot(IMAGE_FORMAT)
    if snapshot is not None:
        ledger, seq = ledger_from(unpack(snapshot.state)), snapshot.seq
    return ledger, replay(journal.read_all(seq), registry, ledger, seq)


def replay(events: Iterable[StoredEvent], registry: Registry, ledger: Ledger, after: int) -> int:
    """Fold the events behind a position into a ledger; the position that it has now."""
    seq = after
    for event in events:
        assert event.seq == seq + 1, "the log has no gap"
        envelope = decode_envelope(event.envelope)
        fact = registry.decode(envelope.type, event.body)
        version = evolve(ledger, fact, Instant(envelope.occurred_at))
        assert version == event.stream_version, "streams grow as they were recorded"
        ledger.undo.forget()
        ledger.changes.clear()
        seq = event.seq
    return seq

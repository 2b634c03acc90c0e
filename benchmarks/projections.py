"""Replay: folding events into the calendar alone, into all read models with their rows, and back."""

import time
from collections.abc import Sequence
from random import Random

import structlog

from benchmarks.bookings import T0, booking, fleet, submission
from benchmarks.figures import SEED, Figure, database, main
from connectors.postgres.journal import PostgresJournal
from connectors.postgres.projecting import Follower
from connectors.postgres.recorded import recorded
from connectors.sequencer.opening import open_sequencer, restore
from connectors.sequencer.server import settle_memory
from domain.journal import Snapshot
from domain.timespan import MICROSECONDS, Instant
from projections.calendar import Calendar
from projections.catalogue import all_projections
from schemas.image import IMAGE_FORMAT, hash_of, image_of, pack
from schemas.registry import registry

NODES = 1_000
REQUESTS = 12_000
CHUNK = 1_000


def _log(dsn: str) -> int:
    """A log of bookings that start and end; its last position."""
    random = Random(SEED)
    journal = PostgresJournal(dsn)
    sequencer = open_sequencer(journal, registry(), holder="b", secret=b"b", clock=None)
    sequencer.submit(fleet(NODES))
    for n in range(0, REQUESTS, 200):
        at = Instant(T0 + n * 60 * MICROSECONDS)
        batch = [submission(booking(random, _quarter(at)), f"b-{n}-{i}", at) for i in range(200)]
        sequencer.submit(batch)
    seq = sequencer.head.seq
    journal.release_lease()
    journal.close()
    return seq


def _quarter(at: Instant) -> Instant:
    return Instant(at - at % (900 * MICROSECONDS))


def _calendar(dsn: str) -> float:
    """Events per second folded from stored bytes into the calendar's rows, in memory."""
    journal = PostgresJournal(dsn)
    events = list(journal.read_all(0))
    calendar = Calendar()
    begun = time.perf_counter()
    for first in range(0, len(events), CHUNK):
        for event in events[first : first + CHUNK]:
            if event.stream.startswith("reservation/"):
                calendar.apply(recorded(event, registry()))
        calendar.table.drain()
    seconds = time.perf_counter() - begun
    journal.close()
    return len(events) / seconds


def _decoded(dsn: str) -> float:
    """Events per second that are only decoded: the raw limit."""
    journal = PostgresJournal(dsn)
    events = list(journal.read_all(0))
    begun = time.perf_counter()
    for event in events:
        recorded(event, registry())
    seconds = time.perf_counter() - begun
    journal.close()
    return len(events) / seconds


def _all(dsn: str, seq: int) -> float:
    """Events per second into every read model, rows and checkpoints and snapshots durable."""
    follower = Follower(dsn, registry(), all_projections())
    begun = time.perf_counter()
    follower.catch_up(seq)
    seconds = time.perf_counter() - begun
    follower.close()
    return seq / seconds


def _restart(dsn: str) -> float:
    """Seconds to the ledger's state at the head, from a snapshot there."""
    journal = PostgresJournal(dsn)
    ledger, seq = restore(journal, registry(), 0)
    image = image_of(ledger)
    journal.save_snapshot(Snapshot(seq, pack(image), hash_of(image)), IMAGE_FORMAT)
    begun = time.perf_counter()
    restore(journal, registry(), 0)
    seconds = time.perf_counter() - begun
    journal.close()
    return seconds


def measure() -> Sequence[Figure]:
    """All figures of the reading side."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    with database() as dsn:
        seq = _log(dsn)
        settle_memory()
        decoded = _decoded(dsn)
        return [
            Figure("projections.calendar", _calendar(dsn), "events/s", 30_000, decoded),
            Figure("projections.all", _all(dsn, seq), "events/s", 10_000, decoded),
            Figure("restart.from-snapshot", _restart(dsn), "s", 10, is_most=True),
            Figure("restart.events", seq, "events"),
        ]


if __name__ == "__main__":
    main(measure, __doc__ or "")

"""Starting again over a long log: from the newest snapshot, and what is behind it.

A history of bookings and cancellations with many live; the raw limit is reading and decoding the
events behind the snapshot, without evolving anything.
"""

import os
import sys
import time
from collections.abc import Sequence
from random import Random

import structlog

from benchmarks.bookings import T0, booking, fleet, submission
from benchmarks.figures import SEED, Figure, database, main
from connectors.postgres.journal import PostgresJournal
from connectors.postgres.projecting import SNAPSHOT_EVENTS, Follower
from connectors.sequencer.engine import Sequencer
from connectors.sequencer.opening import open_sequencer
from domain import commands as c
from domain.ids import ReservationId
from domain.states import OVER
from domain.submission import OutcomeKind
from domain.timespan import MICROSECONDS, Instant
from schemas.envelope import decode_envelope
from schemas.registry import registry

NODES = 5_000
LIVE = 100_000
STEP_MICROSECONDS = 3 * 3600 * MICROSECONDS
"""How far time goes on between two steps, so that what is over for a month is forgotten."""
EVENTS = int(os.environ.get("GPULEDGER_BENCH_EVENTS", "1000000"))
STEP = 2_048


def _opened(dsn: str) -> Sequencer:
    return open_sequencer(
        PostgresJournal(dsn), registry(), holder="bench", secret=b"bench", clock=None
    )


def _grown(sequencer: Sequencer, random: Random) -> None:
    """A log of so many events: live bookings up to a number, then one out for each in.

    Time goes on meanwhile: windows open and end, and what is over for long is forgotten.
    """
    sequencer.submit(fleet(NODES))
    live: list[str] = []
    number = 0
    now = T0
    while sequencer.head.seq < EVENTS:
        now = Instant(now + STEP_MICROSECONDS)
        gone = [live.pop(random.randrange(len(live))) for _ in range(len(live) - LIVE)]
        cancelled = [c.CancelReservation(ReservationId(each)) for each in gone]
        wanted = [booking(random, now) for _ in range(STEP)]
        asked = [
            submission(each, f"h-{number + n}", now) for n, each in enumerate(cancelled + wanted)
        ]
        number += len(asked)
        live += [
            outcome.facts[0].stream.removeprefix("reservation/")
            for outcome in sequencer.submit(asked)[len(cancelled) :]
            if outcome.kind is OutcomeKind.ACCEPTED
        ]
        print(f"\r{sequencer.head.seq:,} events", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def _decoding_s(dsn: str, after: int) -> float:
    journal = PostgresJournal(dsn)
    begun = time.perf_counter()
    for event in journal.read_all(after):
        registry().decode(decode_envelope(event.envelope).type, event.body)
    seconds = time.perf_counter() - begun
    journal.close()
    return seconds


def measure() -> Sequence[Figure]:
    """How long a writer needs until it can decide, with a snapshot as old as it gets."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    with database() as dsn:
        sequencer = _opened(dsn)
        _grown(sequencer, Random(SEED))
        head = sequencer.head.seq
        sequencer.journal.release_lease()
        follower = Follower(dsn, registry(), [])
        follower.catch_up(head // SNAPSHOT_EVENTS * SNAPSHOT_EVENTS - 1)
        follower.close()
        del sequencer
        begun = time.perf_counter()
        again = _opened(dsn)
        seconds = time.perf_counter() - begun
        assert again.head.seq == head + 1, "everything is there, and one fact more: the lease"
        kept = len(again.ledger.reservations)
        live = sum(r.state not in OVER for r in again.ledger.reservations.values())
        again.journal.release_lease()
        raw = _decoding_s(dsn, head - head % SNAPSHOT_EVENTS)
    return [
        Figure("restart.from-snapshot", seconds, "s", 10, raw, is_most=True),
        Figure("restart.events", head, "events"),
        Figure("restart.live", live, "reservations"),
        Figure("restart.over", kept - live, "reservations"),
    ]


if __name__ == "__main__":
    main(measure, __doc__ or "")

"""The write path: bookings per second with everything in it, its latency, and a lone command.

The raw limit is the bare loop over the very batches of the same run: head, claims, COPY of the same
events and cells, and no domain.
"""

import gc
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import psycopg
import structlog

from benchmarks.bookings import booking, fleet, submission
from benchmarks.figures import SEED, Figure, database, main
from benchmarks.journal import bare_commit_ms, raw_seconds
from connectors.client.gateway import Gateway
from connectors.postgres.journal import PostgresJournal
from connectors.sequencer.engine import Sequencer
from connectors.sequencer.opening import open_sequencer
from connectors.sequencer.server import GC_ALLOCATIONS, SequencerServer
from domain.journal import Batch
from domain.submission import OutcomeKind
from schemas.registry import registry

NODES = 5_000
LIVE = 20_000
MEASURED = 20_000
LONE = 300
CLIENTS = 200
SECONDS = 8.0


def _filled(dsn: str, random: Random) -> Sequencer:
    """A ledger with a large fleet and many live bookings."""
    sequencer = open_sequencer(
        PostgresJournal(dsn), registry(), holder="bench", secret=b"bench", clock=None
    )
    sequencer.submit(fleet(NODES))
    gc.freeze()
    gc.set_threshold(GC_ALLOCATIONS)
    sequencer.submit([submission(booking(random), f"live-{n}") for n in range(LIVE)])
    return sequencer


@contextmanager
def _batches_of(sequencer: Sequencer) -> Iterator[list[Batch]]:
    """What a sequencer appends meanwhile."""
    made: list[Batch] = []
    append = sequencer.journal.append

    def kept(batch: Batch) -> None:
        made.append(batch)
        append(batch)

    sequencer.journal.append = kept  # type: ignore[method-assign]
    try:
        yield made
    finally:
        sequencer.journal.append = append  # type: ignore[method-assign]


def _bare_s(made: Sequence[Batch]) -> float:
    """Seconds of the bare loop over batches, in a database that stands where they begin."""
    with database() as dsn:
        before = made[0].previous
        with psycopg.connect(dsn) as connection:
            connection.execute(
                "INSERT INTO log_head (shard, seq, epoch, recorded_at, tree)"
                " VALUES (%s, %s, %s, %s, %s)",
                (before.shard, before.seq, before.epoch, before.recorded_at, before.tree),
            )
        return raw_seconds(dsn, made, before.epoch)


def _lone_ms(sequencer: Sequencer, random: Random) -> float:
    taken: list[float] = []
    for n in range(LONE):
        one = [submission(booking(random), f"lone-{n}")]
        begun = time.perf_counter()
        sequencer.submit(one)
        taken.append(time.perf_counter() - begun)
    return sorted(taken)[LONE // 2] * 1e3


def _latency(sequencer: Sequencer, random: Random, rate: float) -> tuple[float, float]:
    """p50 and p99 in ms from submit to durable reply, of many clients at a share of the rate."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s"
        server = SequencerServer(sequencer, path, None)
        thread = threading.Thread(target=server.run)
        thread.start()
        gateway = Gateway(path)
        taken: list[float] = []
        number = 0
        begun = time.perf_counter()
        tick = CLIENTS / rate / 10
        while time.perf_counter() - begun < SECONDS:
            due = time.perf_counter()
            group = [submission(booking(random), f"p-{number + n}") for n in range(CLIENTS // 10)]
            number += len(group)
            sent = time.perf_counter()
            gateway.submit(group)
            taken += [time.perf_counter() - sent] * len(group)
            time.sleep(max(0.0, due + tick - time.perf_counter()))
        server.stop()
        gateway.close()
        thread.join()
    taken.sort()
    return taken[len(taken) // 2] * 1e3, taken[int(len(taken) * 0.99)] * 1e3


def measure() -> Sequence[Figure]:
    """All figures of the write path."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    random = Random(SEED)
    with database() as dsn:
        bare = bare_commit_ms(dsn)
        sequencer = _filled(dsn, random)
        bookings = [submission(booking(random), f"b-{n}") for n in range(MEASURED)]
        with _batches_of(sequencer) as made:
            begun = time.perf_counter()
            outcomes = sequencer.submit(bookings)
            seconds = time.perf_counter() - begun
        accepted = sum(o.kind is OutcomeKind.ACCEPTED for o in outcomes)
        raw = accepted / _bare_s(made)
        lone = _lone_ms(sequencer, random)
        rate = accepted / seconds
        p50, p99 = _latency(sequencer, random, rate * 0.7)
        sequencer.journal.close()  # type: ignore[attr-defined]
    return [
        Figure("sequencer.accepted", rate, "per s", 10_000, raw),
        Figure("sequencer.of-bare-loop", rate / raw, "x", 0.4),
        Figure("sequencer.latency-p50", p50, "ms"),
        Figure("sequencer.latency-p99", p99, "ms", 50, is_most=True),
        Figure("sequencer.lone", lone, "ms", 3 * bare, bare, is_most=True),
    ]


if __name__ == "__main__":
    main(measure, __doc__ or "")

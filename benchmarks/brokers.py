"""A real broker for a benchmark, and a log to carry."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from benchmarks.bookings import booking, fleet, submission
from benchmarks.figures import SEED
from connectors.kafka import topics
from connectors.kafka.broker import LocalBroker
from connectors.kafka.settings import KafkaSettings
from connectors.postgres.journal import PostgresJournal
from connectors.sequencer.opening import open_sequencer
from schemas.registry import registry

NODES = 1_000


@contextmanager
def broker() -> Iterator[KafkaSettings]:
    """A broker of `KAFKA_BOOTSTRAP_SERVERS`, else one of our own, with our topics."""
    named = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    prefix = f"bench{os.getpid()}."
    if named:
        settings = KafkaSettings(tuple(named.split(",")), prefix)
        topics.create(settings)
        yield settings
        return
    with TemporaryDirectory() as folder, LocalBroker(Path(folder)) as local:
        settings = KafkaSettings((local.bootstrap_servers,), prefix)
        topics.create(settings)
        yield settings


def grown(dsn: str, events: int) -> int:
    """A log of bookings; its last position."""
    random = Random(SEED)
    journal = PostgresJournal(dsn)
    sequencer = open_sequencer(journal, registry(), holder="b", secret=b"b", clock=None)
    sequencer.submit(fleet(NODES))
    number = 0
    while sequencer.head.seq < events:
        sequencer.submit([submission(booking(random), f"b-{number + n}") for n in range(512)])
        number += 512
    journal.release_lease()
    journal.close()
    return sequencer.head.seq

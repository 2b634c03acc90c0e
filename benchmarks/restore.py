"""Restoring a log from its topic, beside reading the topic alone."""

import os
import time
from collections.abc import Sequence

import structlog

from benchmarks.brokers import broker, grown
from benchmarks.figures import Figure, database, main
from connectors.kafka.reader import EventReader, tree_of
from connectors.kafka.relay import Relay
from connectors.postgres.journal import JournalReader
from connectors.postgres.marks import PostgresMarks
from connectors.wiring.restoring import restore_from_kafka
from schemas.registry import registry

EVENTS = 40_000


def measure() -> Sequence[Figure]:
    """Events per second into journal, claims, cells and tiles; and with read models and checks."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    with broker() as settings, database() as dsn, database() as fresh:
        os.environ["KAFKA_BOOTSTRAP_SERVERS"] = ",".join(settings.bootstrap_servers)
        os.environ["KAFKA_PREFIX"] = settings.prefix
        count = grown(dsn, EVENTS)
        reader, marks = JournalReader(dsn), PostgresMarks(dsn)
        relay = Relay(reader, marks, registry(), settings)
        relay.open()
        while relay.step():
            pass
        for part in (relay, marks, reader):
            part.close()
        begun = time.perf_counter()
        with EventReader(settings) as topic:
            tree_of(topic)
        raw = count / (time.perf_counter() - begun)
        times: list[float] = []
        begun = time.perf_counter()
        done = restore_from_kafka(
            fresh, catch_up=False, tell=lambda *_: times.append(time.perf_counter())
        )
        seconds = time.perf_counter() - begun
        assert all(done.checks.values()), done.checks
    return [
        Figure("restore.journal", count / (times[-1] - begun), "per s", 15_000, raw),
        Figure("restore.all", count / seconds, "per s", None, raw),
    ]


if __name__ == "__main__":
    main(measure, __doc__ or "")

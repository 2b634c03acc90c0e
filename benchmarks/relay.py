"""The relay beside a bare producer that sends the same bytes; and how soon an event is on the topic."""

import threading
import time
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from random import Random

import structlog
from kafka import KafkaProducer, TopicPartition

from benchmarks.bookings import booking, submission
from benchmarks.brokers import broker, grown
from benchmarks.figures import SEED, Figure, database, main
from connectors.kafka import topics
from connectors.kafka.records import number, record_of
from connectors.kafka.relay import Relay, run
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.tail import consumer_of
from connectors.postgres.journal import JournalReader, PostgresJournal
from connectors.postgres.marks import PostgresMarks
from connectors.sequencer.opening import open_sequencer
from schemas.registry import registry

EVENTS = 40_000
BARE_TOPIC = topics.CHARGES
PER_SECOND = 2_000
SECONDS = 8.0


def _bare(settings: KafkaSettings, dsn: str) -> float:
    """Records per second of a producer without transactions, the records made beforehand."""
    reader = JournalReader(dsn)
    records = [record_of(event, registry(), 0, 1) for event in reader.read_all(0)]
    reader.close()
    producer = KafkaProducer(**settings.client, acks="all", linger_ms=5, batch_size=1 << 18)
    begun = time.perf_counter()
    for record in records:
        producer.send(
            settings.prefix + BARE_TOPIC,
            key=record.key,
            value=record.value,
            headers=list(record.headers),
            partition=0,
        )
    producer.flush()
    seconds = time.perf_counter() - begun
    producer.close()
    return len(records) / seconds


def _relayed(settings: KafkaSettings, dsn: str) -> float:
    """Events per second from the journal to the topic, from a standing start."""
    reader, marks = JournalReader(dsn), PostgresMarks(dsn)
    relay = Relay(reader, marks, registry(), settings)
    relay.open()
    sent, begun = 0, time.perf_counter()
    while step := relay.step():
        sent += step
    seconds = time.perf_counter() - begun
    for part in (relay, marks, reader):
        part.close()
    return sent / seconds


def _keep_relaying(settings: KafkaSettings, dsn: str, done_with: Event) -> None:
    """A relay in a process of its own, as a service has it."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    marks = PostgresMarks(dsn)
    relay = Relay(JournalReader(dsn), marks, registry(), settings)
    run(relay, marks, marks.wait, done_with.is_set)


def _latency_ms(settings: KafkaSettings, dsn: str) -> tuple[float, float]:
    """p50 and p99 from the commit's return to the event's arrival at a reader."""
    spawn = get_context("spawn")
    done_with = spawn.Event()
    relaying = spawn.Process(target=_keep_relaying, args=(settings, dsn, done_with))
    relaying.start()
    stopped = threading.Event()
    committed: dict[int, float] = {}
    arrived: dict[int, float] = {}
    place = TopicPartition(settings.prefix + topics.EVENTS, 0)
    consumer = consumer_of(settings, max_poll_records=5_000)
    consumer.assign([place])
    consumer.seek_to_end(place)
    consumer.position(place)

    def consume() -> None:
        while not stopped.is_set():
            for record in consumer.poll(20).get(place, ()):
                arrived[number(record.headers, "lg_seq")] = time.perf_counter()

    reading = threading.Thread(target=consume)
    reading.start()
    random = Random(SEED + 1)
    sequencer = open_sequencer(
        PostgresJournal(dsn), registry(), holder="b", secret=b"b", clock=None
    )
    count, group = 0, PER_SECOND // 100
    begun = time.perf_counter()
    while (elapsed := time.perf_counter() - begun) < SECONDS:
        bookings = [submission(booking(random), f"l-{count + n}") for n in range(group)]
        before = sequencer.head.seq
        sequencer.submit(bookings)
        done = time.perf_counter()
        committed.update(dict.fromkeys(range(before + 1, sequencer.head.seq + 1), done))
        count += group
        time.sleep(max(0.0, count / PER_SECOND - elapsed))
    time.sleep(2.0)
    stopped.set()
    done_with.set()
    relaying.join()
    reading.join()
    consumer.close()
    sequencer.journal.release_lease()
    sequencer.journal.close()  # type: ignore[attr-defined]
    taken = sorted((arrived[seq] - at) * 1e3 for seq, at in committed.items() if seq in arrived)
    assert len(taken) == len(committed), "every event arrived"
    return taken[len(taken) // 2], taken[int(len(taken) * 0.99)]


def measure() -> Sequence[Figure]:
    """Throughput and latency of the relay."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    with broker() as settings, database() as dsn:
        grown(dsn, EVENTS)
        bare = _bare(settings, dsn)
        relayed = _relayed(settings, dsn)
        p50, p99 = _latency_ms(settings, dsn)
    return [
        Figure("relay.events", relayed, "per s", bare / 2, bare),
        Figure("relay.latency-p50", p50, "ms"),
        Figure("relay.latency-p99", p99, "ms", 100, is_most=True),
    ]


if __name__ == "__main__":
    main(measure, __doc__ or "")

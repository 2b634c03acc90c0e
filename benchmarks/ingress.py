"""Ingress: commands from the topic to durable, published outcomes; beside polling them alone."""

import time
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import structlog
from kafka import KafkaProducer, TopicPartition

from benchmarks.bookings import OPERATOR, T0, booking, fleet, submission
from benchmarks.brokers import NODES, broker
from benchmarks.figures import SEED, Figure, database, main
from connectors.client.gateway import Gateway
from connectors.kafka import topics
from connectors.kafka.commands import CommandReader
from connectors.kafka.ingress import Ingress
from connectors.kafka.records import wire
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.tail import consumer_of
from connectors.postgres.journal import PostgresJournal
from connectors.postgres.places import PostgresPlaces
from connectors.sequencer.opening import open_sequencer
from connectors.sequencer.server import SequencerServer, serve_until_signalled
from connectors.tokens.tokens import Tokens
from domain.timespan import MICROSECONDS
from schemas.registry import registry

COMMANDS = 15_000


def _publish(settings: KafkaSettings) -> None:
    random = Random(SEED)
    producer = KafkaProducer(**settings.client, acks="all", linger_ms=5, batch_size=1 << 18)
    ahead = T0 + 24 * 3600 * MICROSECONDS
    for number in range(COMMANDS):
        contract, body = registry().encode(booking(random, ahead))  # type: ignore[arg-type]
        producer.send(
            settings.prefix + topics.COMMANDS,
            value=wire(contract.id, body),
            headers=[("lg_key", f"k-{number}".encode())],
            partition=number % topics.COMMAND_PARTITIONS,
        )
    producer.flush()
    producer.close()


def _polled(settings: KafkaSettings) -> float:
    """Records per second that are only read: the raw limit."""
    places = [
        TopicPartition(settings.prefix + topics.COMMANDS, n)
        for n in range(topics.COMMAND_PARTITIONS)
    ]
    consumer = consumer_of(settings, max_poll_records=500)
    consumer.assign(places)
    consumer.seek_to_beginning(*places)
    count, begun = 0, time.perf_counter()
    while count < COMMANDS:
        count += sum(map(len, consumer.poll(200).values()))
    seconds = time.perf_counter() - begun
    consumer.close()
    return count / seconds


def _keep_writing(dsn: str, path: Path) -> None:
    """A sequencer in a process of its own, as a service has it."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    sequencer = open_sequencer(
        PostgresJournal(dsn), registry(), holder="b", secret=b"b", clock=lambda: T0
    )
    sequencer.submit(fleet(NODES))
    sequencer.submit([submission(booking(Random(1)), "warm")])
    serve_until_signalled(SequencerServer(sequencer, path, None), lambda: None)


def _ingested(settings: KafkaSettings, dsn: str) -> float:
    places = PostgresPlaces(dsn)
    spawn = get_context("spawn")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s"
        writing = spawn.Process(target=_keep_writing, args=(dsn, path))
        writing.start()
        while not path.exists():
            time.sleep(0.05)
        gateway = Gateway(path)
        reader = CommandReader(registry(), Tokens({}), OPERATOR)
        ingress = Ingress(settings, reader, gateway, places, registry())
        ingress.open()
        count, begun = 0, time.perf_counter()
        while count < COMMANDS:
            count += ingress.step()
        seconds = time.perf_counter() - begun
        writing.terminate()
        writing.join()
        for part in (ingress, gateway, places):
            part.close()
    return count / seconds


def measure() -> Sequence[Figure]:
    """Commands per second through ingress."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    with broker() as settings, database() as dsn:
        _publish(settings)
        polled = _polled(settings)
        ingested = _ingested(settings, dsn)
    return [Figure("ingress.commands", ingested, "per s", 5_000, polled)]


if __name__ == "__main__":
    main(measure, __doc__ or "")

"""Kafka's parts as tests put them together: relays that are let go, and the command line."""

import os
import subprocess
import sys
from contextlib import ExitStack
from typing import Any

from kafka import TopicPartition

from connectors.kafka import topics
from connectors.kafka.records import event_of
from connectors.kafka.relay import Relay
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.tail import consumer_of
from connectors.postgres.journal import JournalReader
from connectors.postgres.marks import PostgresMarks
from domain.journal import StoredEvent
from schemas.registry import registry


def relay(stack: ExitStack, dsn: str, settings: KafkaSettings) -> Relay:
    """An open relay; the stack lets go of its parts."""
    reader, marks = JournalReader(dsn), PostgresMarks(dsn)
    found = Relay(reader, marks, registry(), settings)
    for part in (reader, marks, found):
        stack.callback(part.close)
    found.open()
    return found


def relayed(dsn: str, settings: KafkaSettings) -> None:
    """Everything in the log is on the topic."""
    with ExitStack() as stack:
        drain(relay(stack, dsn, settings))


def drain(relay: Relay) -> None:
    """Send all there is."""
    while relay.step():
        pass


def on_topic(settings: KafkaSettings) -> list[tuple[StoredEvent, int]]:
    """Every committed event with its epoch, as a consumer of no library of ours sees them."""
    return [event_of(record, registry()) for record in records_on(settings, topics.EVENTS)]


def records_on(settings: KafkaSettings, topic: str) -> list[Any]:
    """Every committed record of a topic with one partition."""
    place = TopicPartition(settings.prefix + topic, 0)
    consumer = consumer_of(settings)
    consumer.assign([place])
    consumer.seek_to_beginning(place)
    end = consumer.end_offsets([place])[place]
    found: list[Any] = []
    while consumer.position(place) < end:
        found += consumer.poll(500).get(place, ())
    consumer.close()
    return found


def in_log(dsn: str) -> list[StoredEvent]:
    """Every event of the log."""
    reader = JournalReader(dsn)
    events = list(reader.read_all(0))
    reader.close()
    return events


def gpuledger(settings: KafkaSettings, *words: str) -> subprocess.CompletedProcess[str]:
    """The command line, with a broker configured."""
    command = [sys.executable, "-m", "connectors.cli", *words]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env=environment(settings),
        timeout=120,
    )


def environment(settings: KafkaSettings) -> dict[str, str]:
    """Ours, with a broker configured."""
    return {
        **os.environ,
        "KAFKA_BOOTSTRAP_SERVERS": ",".join(settings.bootstrap_servers),
        "KAFKA_PREFIX": settings.prefix,
    }

"""Three brokers, of which one and then two are stopped: the relay waits, and nothing is lost."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from connectors.kafka import topics
from connectors.kafka.broker import BrokerRefused, LocalBroker, Place, free_ports
from connectors.kafka.relay import Relay, run
from connectors.kafka.settings import KafkaSettings
from connectors.postgres.journal import JournalReader
from connectors.postgres.marks import PostgresMarks
from schemas.registry import registry
from tests import builders as b
from tests.conftest import IN_CI
from tests.integration.conftest import eventually
from tests.journals import furnished, send, shut
from tests.kafka_parts import in_log, on_topic

BROKERS = 3


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[list[LocalBroker]]:
    ports = free_ports(2 * BROKERS)
    places = [Place(n + 1, ports[2 * n], ports[2 * n + 1]) for n in range(BROKERS)]
    found = [
        LocalBroker(tmp_path / str(p.node_id), cluster=places, node_id=p.node_id) for p in places
    ]
    try:
        for broker in found:
            broker.start()
        for broker in found:
            broker.wait()
    except BrokerRefused as error:
        if IN_CI:
            raise
        pytest.skip(f"no Kafka: {error}")
    yield found
    for broker in found:
        broker.kill()


def marked(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT seq FROM relay_mark").fetchone()
    return int(row[0]) if row else 0


def test_below_min_insync_the_relay_waits_and_nothing_is_lost(
    brokers: list[LocalBroker], postgres_dsn: str
) -> None:
    settings = KafkaSettings(tuple(broker.bootstrap_servers for broker in brokers), "cluster.")
    topics.create(settings)
    assert [f for f in topics.check(settings) if f.topic == "cluster.events.v1"] == []
    sequencer = furnished(postgres_dsn)
    stopped = threading.Event()
    with ExitStack() as stack:
        reader, marks = JournalReader(postgres_dsn), PostgresMarks(postgres_dsn)
        relay = Relay(reader, marks, registry(), settings)
        thread = threading.Thread(target=run, args=(relay, marks, marks.wait, stopped.is_set))
        thread.start()
        for part in (reader, marks):
            stack.callback(part.close)
        stack.callback(thread.join)
        stack.callback(stopped.set)
        eventually(lambda: marked(postgres_dsn) == sequencer.head.seq, 60)
        brokers[2].stop()
        send(sequencer, b.book(gpus=1))
        eventually(lambda: marked(postgres_dsn) == sequencer.head.seq, 90)
        before = sequencer.head.seq
        brokers[1].kill()
        send(sequencer, b.book(gpus=2))
        with pytest.raises(AssertionError, match="never came true"):
            eventually(lambda: marked(postgres_dsn) > before, 5)
        brokers[1].start()
        brokers[2].start()
        eventually(lambda: marked(postgres_dsn) == sequencer.head.seq, 120)
    assert [event for event, _ in on_topic(settings)] == in_log(postgres_dsn)
    shut(sequencer)

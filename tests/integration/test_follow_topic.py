"""Read models from the topic into another database: the same rows and the same hash."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest

from connectors.kafka.log import TopicLog
from connectors.kafka.settings import KafkaSettings
from connectors.postgres.migrate import migrate
from connectors.postgres.projecting import Follower
from connectors.sequencer.engine import Sequencer
from projections.catalogue import all_projections
from schemas.registry import registry
from tests import builders as b
from tests.integration.conftest import eventually
from tests.journals import furnished, send, shut
from tests.kafka_parts import environment, gpuledger, relayed


@pytest.fixture
def sequencer(postgres_dsn: str) -> Iterator[Sequencer]:
    found = furnished(postgres_dsn)
    for hour in range(1, 20):
        send(found, b.book(gpus=3, start=hour, end=hour + 1))
    yield found
    shut(found)


def projected(dsn: str) -> set[tuple[object, ...]]:
    with psycopg.connect(dsn) as connection:
        return set(connection.execute("SELECT name, seq, hash FROM projection").fetchall())


def test_every_read_model_is_the_same_from_the_topic(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings, another_dsn: str
) -> None:
    relayed(postgres_dsn, settings)
    here = Follower(postgres_dsn, registry(), all_projections())
    here.catch_up(sequencer.head.seq)
    here.close()
    migrate(another_dsn)
    log = TopicLog(settings)
    there = Follower(another_dsn, registry(), all_projections(), snapshots=False, log=log)
    there.catch_up(sequencer.head.seq)
    there.close()
    assert projected(another_dsn) == projected(postgres_dsn)
    again = Follower(another_dsn, registry(), all_projections(), snapshots=False, log=log)
    send(sequencer, b.book(gpus=1, start=30, end=31))
    relayed(postgres_dsn, settings)
    again.catch_up(sequencer.head.seq)
    again.close()
    log.close()
    here = Follower(postgres_dsn, registry(), all_projections())
    here.catch_up(sequencer.head.seq)
    here.close()
    assert projected(another_dsn) == projected(postgres_dsn)


def test_a_process_keeps_one_read_model_another_dsn_as_events_come(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings, another_dsn: str
) -> None:
    relayed(postgres_dsn, settings)
    words = ["projection", "follow", "usage", "--dsn", another_dsn]
    process = subprocess.Popen(
        [sys.executable, "-m", "connectors.cli", *words],
        env=environment(settings),
        stderr=subprocess.PIPE,
    )

    def seq() -> int:
        try:
            return max((int(str(row[1])) for row in projected(another_dsn)), default=0)
        except psycopg.Error:
            return 0

    eventually(lambda: seq() == sequencer.head.seq, 40)
    send(sequencer, b.book(gpus=1, start=30, end=31))
    relayed(postgres_dsn, settings)
    eventually(lambda: seq() == sequencer.head.seq, 40)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 0, errors
    assert {row[0] for row in projected(another_dsn)} == {"usage"}


def test_a_read_model_that_there_is_not_is_named(settings: KafkaSettings) -> None:
    found = gpuledger(settings, "projection", "follow", "weather", "--dsn", "dbname=nowhere")
    assert found.returncode == 1
    assert "there are" in found.stderr

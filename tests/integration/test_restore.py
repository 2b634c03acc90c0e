"""A database from its topic alone: the same bytes, claims that hold, and a stop at what is missing."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import psycopg
import pytest
from kafka import KafkaProducer

from connectors.kafka import topics
from connectors.kafka.records import record_of
from connectors.kafka.relay import Halted
from connectors.kafka.settings import KafkaSettings
from connectors.postgres.journal import PostgresJournal
from connectors.sequencer.engine import Sequencer
from domain import commands as c
from domain.journal import Fenced
from domain.submission import Submission
from schemas.image import hash_of, image_of
from schemas.registry import registry
from tests import builders as b
from tests.journals import furnished, opened, send, shut
from tests.kafka_parts import gpuledger, in_log, relay, relayed

TABLES = ("journal", "claim", "tile", "cell", "calendar", "reservation", "tenant", "node")


@pytest.fixture
def sequencer(postgres_dsn: str) -> Iterator[Sequencer]:
    found = furnished(postgres_dsn)
    for hour in range(1, 60):
        send(found, b.book(gpus=3, start=hour, end=hour + 1), b.book(gpus=900))
    (booked,) = send(found, b.book(gpus=2, start=70, end=72))
    name = booked.facts[0].stream.removeprefix("reservation/")
    send(found, c.CancelReservation(b.reservation(name)))
    send(found, *(b.book(gpus=1, start=80 + n, end=90 + n) for n in range(200)))
    yield found
    shut(found)


def rows(dsn: str, table: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as connection:
        query = f"SELECT t::text FROM {table} t ORDER BY 1"
        return connection.execute(query.encode()).fetchall()


def restore(settings: KafkaSettings, dsn: str, *words: str) -> dict[str, Any]:
    done = gpuledger(settings, "restore", "--from", "kafka", "--dsn", dsn, "--json", *words)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def follow(dsn: str, seq: int) -> None:
    from connectors.postgres.projecting import Follower
    from projections.catalogue import all_projections

    follower = Follower(dsn, registry(), all_projections())
    follower.catch_up(seq)
    follower.close()


def test_an_empty_database_gets_every_row_back(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings, another_dsn: str
) -> None:
    relayed(postgres_dsn, settings)
    follow(postgres_dsn, sequencer.head.seq)
    done = restore(settings, another_dsn)
    assert done["root"] == sequencer.tree.root.hex()
    assert done["state_hash"] == hash_of(image_of(sequencer.ledger)).hex()
    assert all(done["checks"].values())
    assert (done["events"], done["claims_lost"]) == (sequencer.head.seq, 0)
    assert done["epoch"] == sequencer.head.epoch + 1
    for table in TABLES:
        assert rows(another_dsn, table) == rows(postgres_dsn, table), table


def test_a_key_that_was_used_before_is_remembered_by_the_restored_log(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings, another_dsn: str
) -> None:
    contract, body = registry().encode(b.book(gpus=2, start=200, end=201))
    mine = Submission(b.OPERATOR, "the key", contract.type, body, b.T0)
    (first,) = sequencer.submit([mine])
    relayed(postgres_dsn, settings)
    restore(settings, another_dsn)
    heir = opened(another_dsn)
    (again,) = heir.submit([mine])
    shut(heir)
    assert (again.command_id, again.seq_from, again.is_repeat) == (
        first.command_id,
        first.seq_from,
        True,
    )


def test_a_database_that_is_behind_its_topic_is_caught_up(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings, another_dsn: str
) -> None:
    relayed(postgres_dsn, settings)
    restore(settings, another_dsn)
    send(sequencer, b.book(gpus=1, start=300, end=301))
    relayed(postgres_dsn, settings)
    refused = gpuledger(settings, "restore", "--from", "kafka", "--dsn", another_dsn)
    assert refused.returncode == 1
    assert "--catch-up" in refused.stderr
    done = restore(settings, another_dsn, "--catch-up")
    assert (done["restored"], done["root"]) == (1, sequencer.tree.root.hex())
    assert rows(another_dsn, "journal") == rows(postgres_dsn, "journal")


def test_a_backup_that_is_behind_its_topic_accepts_nothing_until_it_is_caught_up(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings, another_dsn: str
) -> None:
    relayed(postgres_dsn, settings)
    restore(settings, another_dsn)
    send(sequencer, *(b.book(gpus=1, start=300 + n, end=301 + n) for n in range(10)))
    relayed(postgres_dsn, settings)
    with ExitStack() as stack, pytest.raises(Halted, match="the database is older than its topic"):
        relay(stack, another_dsn, settings)
    with closing(PostgresJournal(another_dsn)) as journal, pytest.raises(Fenced, match="fork"):
        journal.take_lease("too early")
    done = restore(settings, another_dsn, "--catch-up")
    assert (done["restored"], done["root"]) == (10, sequencer.tree.root.hex())
    heir = opened(another_dsn)
    send(heir, b.book(gpus=1, start=400, end=401))
    shut(heir)
    relayed(another_dsn, settings)
    assert in_log(another_dsn)[: sequencer.head.seq] == in_log(postgres_dsn)


def test_a_fork_is_not_mended_over(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings, another_dsn: str
) -> None:
    relayed(postgres_dsn, settings)
    restore(settings, another_dsn)
    other = opened(another_dsn)
    send(other, b.book(gpus=1, start=500, end=501))
    shut(other)
    send(sequencer, b.book(gpus=1, start=300, end=301), b.book(gpus=1, start=300, end=301))
    send(sequencer, b.book(gpus=1, start=310, end=311))
    relayed(postgres_dsn, settings)
    refused = gpuledger(settings, "restore", "--dsn", another_dsn, "--catch-up")
    assert refused.returncode == 1
    assert "fork: event" in refused.stderr


def test_a_topic_with_a_gap_is_restored_up_to_it_and_no_further(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings, another_dsn: str
) -> None:
    events = in_log(postgres_dsn)
    producer = KafkaProducer(**settings.client)
    for event in (*events[:50], *events[51:]):
        record = record_of(event, registry(), 0, 1)
        topic = settings.prefix + topics.EVENTS
        producer.send(topic, record.value, record.key, list(record.headers), 0)
    producer.flush()
    producer.close()
    refused = gpuledger(settings, "restore", "--dsn", another_dsn)
    assert refused.returncode == 1
    assert "event 51 is missing" in refused.stderr
    assert in_log(another_dsn) == events[:50]


def test_an_empty_topic_restores_nothing(settings: KafkaSettings, another_dsn: str) -> None:
    refused = gpuledger(settings, "restore", "--dsn", another_dsn)
    assert refused.returncode == 1
    assert "holds no event" in refused.stderr

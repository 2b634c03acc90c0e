"""The relay on a real broker: the topic is the log, in order, once, or it halts and says why."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import psycopg
import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaError

from connectors.kafka import checkpoints, topics
from connectors.kafka.checkpoints import CheckpointTopic
from connectors.kafka.records import record_of
from connectors.kafka.relay import Halted, Relay, run
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.tail import tail_of
from connectors.postgres.journal import JournalReader, PostgresJournal
from connectors.postgres.marks import PostgresMarks
from connectors.sequencer.engine import Sequencer
from domain.journal import Fenced
from schemas.registry import registry
from tests import builders as b
from tests.integration.conftest import eventually
from tests.journals import furnished, send, shut
from tests.kafka_parts import drain, gpuledger, in_log, on_topic, records_on, relay


@pytest.fixture
def sequencer(postgres_dsn: str) -> Iterator[Sequencer]:
    opened = furnished(postgres_dsn)
    yield opened
    shut(opened)


Relays = Callable[[], Relay]


@pytest.fixture
def relay_of(postgres_dsn: str, settings: KafkaSettings) -> Iterator[Relays]:
    """Relays over the log, each open; all let go in the end."""
    with ExitStack() as stack:
        yield lambda: relay(stack, postgres_dsn, settings)


def test_the_topic_is_the_log_byte_for_byte(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings, relay_of: Relays
) -> None:
    running = relay_of()
    drain(running)
    send(sequencer, b.book(gpus=3), b.book(gpus=900))
    drain(running)
    running.close()
    assert [event for event, _ in on_topic(settings)] == in_log(postgres_dsn)


def test_a_relay_goes_on_behind_the_topics_own_tail(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings, relay_of: Relays
) -> None:
    first = relay_of()
    drain(first)
    first.close()
    send(sequencer, b.book(gpus=3))
    # The mark says less than the topic holds, as after a crash between the two.
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("UPDATE relay_mark SET seq = 1")
    second = relay_of()
    drain(second)
    second.close()
    assert [event for event, _ in on_topic(settings)] == in_log(postgres_dsn)


def test_a_transaction_that_was_left_open_is_taken_back_and_sent_again(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings, relay_of: Relays
) -> None:
    dying = relay_of()
    producer = dying._producer
    assert producer is not None
    producer.begin_transaction()
    event = in_log(postgres_dsn)[0]
    record = record_of(event, registry(), 0, 1)
    topic = settings.prefix + topics.EVENTS
    producer.send(
        topic, key=record.key, value=record.value, headers=list(record.headers), partition=0
    )
    producer.flush()
    heir = relay_of()
    drain(heir)
    heir.close()
    assert [event for event, _ in on_topic(settings)] == in_log(postgres_dsn)
    with pytest.raises(KafkaError):
        producer.commit_transaction()
    dying.close()
    assert [event for event, _ in on_topic(settings)] == in_log(postgres_dsn)


def test_a_relay_that_another_one_followed_writes_nothing_more(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings, relay_of: Relays
) -> None:
    old = relay_of()
    drain(old)
    new = relay_of()
    send(sequencer, b.book(gpus=3))
    with pytest.raises(KafkaError):
        old.step()
    old.close()
    drain(new)
    new.close()
    assert [event for event, _ in on_topic(settings)] == in_log(postgres_dsn)


def test_only_one_of_two_relays_has_the_turn(postgres_dsn: str) -> None:
    one, two = PostgresMarks(postgres_dsn), PostgresMarks(postgres_dsn)
    assert one.take_turn()
    assert one.take_turn()
    assert not two.take_turn()
    one.close()
    eventually(two.take_turn)
    two.close()


def test_a_topic_that_was_made_anew_halts_the_relay(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings, relay_of: Relays
) -> None:
    running = relay_of()
    drain(running)
    running.close()
    with topics.admin(settings) as client:
        client.delete_topics([settings.prefix + topics.EVENTS])
    topics.create(settings)
    for _ in range(2):
        with pytest.raises(Halted, match="made anew"):
            relay_of()
    assert on_topic(settings) == []
    done = gpuledger(settings, "topics", "accept", "--dsn", postgres_dsn, "--yes", "--json")
    assert json.loads(done.stdout) == {"topic_ends_at": 0, "sent_again": sequencer.head.seq}
    drain(relay_of())
    assert [event for event, _ in on_topic(settings)] == in_log(postgres_dsn)


def test_a_topic_that_is_made_anew_under_a_running_relay_halts_it(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings
) -> None:
    reader, marks = JournalReader(postgres_dsn), PostgresMarks(postgres_dsn)
    running = Relay(reader, marks, registry(), settings)
    halted: list[str] = []

    def relaying() -> None:
        try:
            run(running, marks, marks.wait, lambda: bool(halted))
        except Halted as error:
            halted.append(str(error))

    thread = threading.Thread(target=relaying)
    thread.start()
    eventually(lambda: running.seq == sequencer.head.seq, 30)
    with topics.admin(settings) as client:
        client.delete_topics([settings.prefix + topics.EVENTS])
    topics.create(settings)
    send(sequencer, b.book(gpus=3))
    eventually(lambda: bool(halted), 90)
    thread.join()
    for part in (running, marks, reader):
        part.close()
    assert "made anew" in halted[0]
    assert on_topic(settings) == []


def test_a_log_that_is_older_than_its_topic_is_a_fork(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings, relay_of: Relays
) -> None:
    running = relay_of()
    drain(running)
    running.close()
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("ALTER TABLE journal DISABLE TRIGGER append_only")
        connection.execute("DELETE FROM journal WHERE seq > 3")
        connection.execute("UPDATE log_head SET seq = 3")
        connection.execute("UPDATE relay_mark SET seq = 3")
    with pytest.raises(Halted, match=r"fork: .* ends at 6, the log at 3"):
        relay_of()
    refused = gpuledger(settings, "topics", "accept", "--dsn", postgres_dsn, "--yes")
    assert (refused.returncode, "fork: event 6" in refused.stderr) == (1, True)
    with pytest.raises(Fenced, match="fork"):
        sequencer.journal.renew_lease()
    sequencer.journal.release_lease()
    with closing(PostgresJournal(postgres_dsn)) as next_one, pytest.raises(Fenced, match="fork"):
        next_one.take_lease("next")


def test_another_event_at_the_same_place_is_a_fork(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings, relay_of: Relays
) -> None:
    running = relay_of()
    drain(running)
    running.close()
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("ALTER TABLE journal DISABLE TRIGGER append_only")
        connection.execute("UPDATE journal SET leaf = sha256('other') WHERE seq = 6")
    with pytest.raises(Halted, match="fork: event 6"):
        relay_of()


def test_the_tail_is_found_behind_any_number_of_markers(settings: KafkaSettings) -> None:
    topic = settings.prefix + topics.EVENTS
    assert tail_of(settings, topic, 0) is None
    producer = KafkaProducer(**settings.client, transactional_id=f"{settings.prefix}t")
    producer.init_transactions()
    for _ in range(70):
        producer.begin_transaction()
        producer.send(topic, value=b"x", partition=0)
        producer.flush()
        producer.abort_transaction()
    producer.close()
    assert tail_of(settings, topic, 0) is None


def test_a_checkpoint_that_finds_no_topic_holds_up_no_event(
    postgres_dsn: str,
    sequencer: Sequencer,
    settings: KafkaSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checkpoints, "PUBLISH_SECONDS_MAX", 1)
    monkeypatch.setattr(checkpoints, "EVERY_SECONDS", 0.0)
    with topics.admin(settings) as client:
        client.delete_topics([settings.prefix + topics.CHECKPOINTS])
    notes = CheckpointTopic(settings, lambda: sequencer.tree, "o", lambda size, _: f"{size}")
    reader, marks = JournalReader(postgres_dsn), PostgresMarks(postgres_dsn)
    running = Relay(reader, marks, registry(), settings)
    ended: list[bool] = []
    thread = threading.Thread(
        target=run, args=(running, marks, marks.wait, lambda: bool(ended), notes.follow)
    )
    thread.start()
    eventually(lambda: running.seq == sequencer.head.seq, 30)
    send(sequencer, b.book(gpus=3))
    eventually(lambda: running.seq == sequencer.head.seq, 30)
    topics.create(settings)
    eventually(lambda: records_on(settings, topics.CHECKPOINTS), 60)
    ended.append(True)
    thread.join()
    for part in (running, notes, marks, reader):
        part.close()
    assert records_on(settings, topics.CHECKPOINTS)[-1].value == str(sequencer.head.seq).encode()

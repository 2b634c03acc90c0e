"""Reading the public copy: resumed by a number, deaf to repeats, and loud about what is missing."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from kafka import KafkaProducer

from connectors.kafka import topics
from connectors.kafka.reader import EventReader, Foreign, Gap, Position, tree_of
from connectors.kafka.records import BadRecord, EventRecord, event_of, record_of, wire
from connectors.kafka.settings import KafkaSettings
from connectors.sequencer.engine import Sequencer
from domain.journal import StoredEvent
from domain.merkle import Tree
from schemas.registry import registry
from tests import builders as b
from tests.journals import furnished, send, shut
from tests.kafka_parts import gpuledger, in_log, relayed


@pytest.fixture
def sequencer(postgres_dsn: str) -> Iterator[Sequencer]:
    opened = furnished(postgres_dsn)
    yield opened
    shut(opened)


def write(settings: KafkaSettings, events: list[StoredEvent], **changed: bytes | None) -> None:
    """Events on the topic by hand, as nobody should."""
    producer = KafkaProducer(**settings.client)
    for event in events:
        record = record_of(event, registry(), 0, 1)
        value = changed.get("value", record.value)
        topic = settings.prefix + topics.EVENTS
        producer.send(topic, key=record.key, value=value, headers=list(record.headers), partition=0)
    producer.flush()
    producer.close()


def test_a_reader_has_the_root_of_the_log_and_goes_on_from_a_stored_position(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings
) -> None:
    relayed(postgres_dsn, settings)
    with EventReader(settings) as reader:
        tree = tree_of(reader)
        position = reader.position
    assert tree.root == sequencer.tree.root
    send(sequencer, b.book(gpus=3))
    relayed(postgres_dsn, settings)
    with EventReader(settings, start=position) as reader:
        assert tree_of(reader, tree).root == sequencer.tree.root
        assert reader.position.seq == sequencer.head.seq


def test_events_that_come_twice_are_read_once(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings
) -> None:
    events = in_log(postgres_dsn)
    write(settings, [*events[:4], *events[1:3], *events])
    with EventReader(settings) as reader:
        assert [e for batch in reader.read_all() for e in batch] == events


def test_a_missing_event_is_named(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings
) -> None:
    events = in_log(postgres_dsn)
    write(settings, [*events[:3], *events[4:]])
    given: list[StoredEvent] = []
    with EventReader(settings) as reader, pytest.raises(Gap, match="event 4 is missing"):
        given.extend(event for batch in reader.read_all() for event in batch)
    assert given == events[:3]
    found = gpuledger(settings, "audit", "verify", "--from", "kafka", "--dsn", postgres_dsn)
    assert found.returncode == 1
    assert "event 4 is missing" in found.stdout


@pytest.mark.parametrize("value", [None, b"", b"\x01abcd", b"not avro at all"])
def test_what_is_no_event_is_named_by_its_offset(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings, value: bytes | None
) -> None:
    (first, *_) = in_log(postgres_dsn)
    write(settings, [first])
    write(settings, [first], value=value)
    with EventReader(settings) as reader, pytest.raises(Foreign, match="offset 1"):
        list(reader.read_all())


def contradicted(record: EventRecord) -> Iterator[tuple[str, EventRecord]]:
    """A record that says something else than its envelope, in each way that there is."""
    yield "the key", replace(record, key=b"elsewhere")
    yield "the schema's id", replace(record, value=wire(1, record.value[5:]))
    for name in ("ce_type", "ce_subject", "ce_id", "lg_seq"):
        headers = [(n, b"7" if n == name else value) for n, value in record.headers]
        yield name, replace(record, headers=headers)
    yield "no schema", replace(record, value=wire(1 << 20, record.value[5:]))


def test_a_record_may_not_contradict_its_envelope(sequencer: Sequencer, postgres_dsn: str) -> None:
    event = in_log(postgres_dsn)[3]
    record = record_of(event, registry(), 0, 1)
    assert event_of(record, registry()) == (event, 1)
    for what, wrong in contradicted(record):
        with pytest.raises(BadRecord, match=what):
            event_of(wrong, registry())


def test_a_reader_goes_to_any_event_without_reading_those_before(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings
) -> None:
    for _ in range(3):
        send(sequencer, b.book(gpus=1))
        relayed(postgres_dsn, settings)
    events = in_log(postgres_dsn)
    with EventReader(settings) as reader:
        for after in (0, 1, len(events) // 2, len(events) - 1, len(events)):
            reader.skip_to(after)
            assert [e for batch in reader.read_all() for e in batch] == events[after:]


def test_a_position_that_retention_took_away_is_a_gap(settings: KafkaSettings) -> None:
    with pytest.raises(Gap, match="is gone"), EventReader(settings, start=Position(9, 9)) as reader:
        reader.read()


def test_verify_says_equal_and_what_it_cannot_exclude(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings
) -> None:
    relayed(postgres_dsn, settings)
    words = ("audit", "verify", "--from", "kafka", "--json")
    equal = gpuledger(settings, *words, "--dsn", postgres_dsn)
    assert equal.returncode == 0, equal.stderr
    verdict = json.loads(equal.stdout)
    assert (verdict["holds"], verdict["events"]) == (True, sequencer.head.seq)
    assert verdict["root"] == sequencer.tree.root.hex()
    assert "every event on Kafka equals the one in the log" in verdict["checked"]
    send(sequencer, b.book(gpus=3))
    behind = json.loads(gpuledger(settings, *words, "--dsn", postgres_dsn).stdout)
    assert "the last 1 events of the log are not on Kafka yet" in behind["not_excluded"]


def test_tail_shows_what_is_on_kafka(
    sequencer: Sequencer, postgres_dsn: str, settings: KafkaSettings
) -> None:
    relayed(postgres_dsn, settings)
    words = ("events", "tail", "--from", "kafka", "--after", "1", "--limit", "2", "--json")
    shown = json.loads(gpuledger(settings, *words).stdout)["events"]
    assert [(e["seq"], e["type"]) for e in shown] == [(2, "PoolOpened.v1"), (3, "NodeJoined.v1")]


def test_the_tree_of_nothing_is_the_empty_one(settings: KafkaSettings) -> None:
    with EventReader(settings) as reader:
        assert tree_of(reader) == Tree()

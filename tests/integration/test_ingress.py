"""Commands from a real topic: decided once, answered at least once, set apart when they are none."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from kafka import KafkaProducer, TopicPartition

from connectors.kafka import topics
from connectors.kafka.commands import CommandReader
from connectors.kafka.ingress import Ingress, IngressHalted
from connectors.kafka.records import unwire, wire
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.tail import consumer_of
from connectors.postgres.places import PostgresPlaces
from connectors.sequencer.engine import Sequencer
from connectors.tokens.tokens import Tokens
from domain.commands import Command
from domain.ids import PrincipalId, TenantId
from domain.messages import CommandOutcome
from domain.principal import Role
from domain.submission import Outcome, OutcomeKind, Submission
from schemas.registry import registry
from tests import builders as b
from tests.journals import furnished, shut
from tests.kafka_parts import gpuledger, in_log

TAKE_SECONDS_MAX = 20
TOKENS = Tokens({})
OPERATOR = TOKENS.issue(PrincipalId("op"), Role.OPERATOR).encode()
TEAM_A = TOKENS.issue(PrincipalId("anna"), Role.TENANT, TenantId("a")).encode()
TEAM_B = TOKENS.issue(PrincipalId("bert"), Role.TENANT, TenantId("b")).encode()


class Straight:
    """The sequencer without its socket, at an instant of the tests; away for so many calls."""

    def __init__(self, sequencer: Sequencer) -> None:
        self.sequencer = sequencer
        self.away = 0

    def submit(self, submissions: Sequence[Submission]) -> list[Outcome]:
        if self.away:
            self.away -= 1
            gone = Outcome(OutcomeKind.UNAVAILABLE, problem="the database is away")
            return [gone] * len(submissions)
        return self.sequencer.submit([replace(each, at=b.T0) for each in submissions])


@pytest.fixture
def gateway(postgres_dsn: str) -> Iterator[Straight]:
    opened = furnished(postgres_dsn)
    yield Straight(opened)
    shut(opened)


@pytest.fixture
def open_ingress(
    gateway: Straight, postgres_dsn: str, settings: KafkaSettings
) -> Iterator[Callable[[], Ingress]]:
    with ExitStack() as stack:

        def opened() -> Ingress:
            places = PostgresPlaces(postgres_dsn)
            reader = CommandReader(registry(), TOKENS)
            ingress = Ingress(settings, reader, gateway, places, registry())
            stack.callback(places.close)
            stack.callback(ingress.close)
            ingress.open()
            return ingress

        yield opened


def publish(
    settings: KafkaSettings, *commands: Command, token: bytes = OPERATOR, first: int = 0
) -> None:
    for number, command in enumerate(commands, first):
        contract, body = registry().encode(command)
        headers = [("lg_token", token), ("lg_key", f"key-{number}".encode())]
        raw(settings, wire(contract.id, body), headers)


def raw(settings: KafkaSettings, value: bytes | None, headers: list[tuple[str, bytes]]) -> None:
    producer = KafkaProducer(**settings.client)
    topic = settings.prefix + topics.COMMANDS
    producer.send(topic, key=b"any", value=value, headers=headers, partition=0)
    producer.flush()
    producer.close()


def take(ingress: Ingress, count: int) -> None:
    """Take in until so many records are answered."""
    until = time.monotonic() + TAKE_SECONDS_MAX
    while count > 0:
        count -= ingress.step()
        assert time.monotonic() < until, f"{count} are still unanswered"
    assert count == 0


def records(settings: KafkaSettings, topic: str) -> list[Any]:
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


def outcomes(settings: KafkaSettings) -> list[CommandOutcome]:
    known = registry()
    return [
        known.decode(known.by_id[unwire(r.value)[0]].type, unwire(r.value)[1])
        for r in records(settings, topics.OUTCOMES)
    ]


def test_a_command_is_decided_and_its_outcome_published(
    settings: KafkaSettings, open_ingress: Callable[[], Ingress], postgres_dsn: str
) -> None:
    publish(settings, b.book(gpus=3), b.book(gpus=900))
    take(open_ingress(), 2)
    accepted, refused = outcomes(settings)
    assert (accepted.outcome, accepted.offset, accepted.key) == ("accepted", 0, "key-0")
    assert accepted.subject.startswith("reservation/")
    assert (refused.outcome, refused.reason) == ("refused", "size-invalid")
    assert refused.evidence
    with psycopg.connect(postgres_dsn) as connection:
        query = 'SELECT partition, "offset" FROM ingress_offset'
        assert connection.execute(query).fetchall() == [(0, 1)]


def test_what_was_decided_but_not_answered_is_answered_again_and_not_done_again(
    settings: KafkaSettings, open_ingress: Callable[[], Ingress], postgres_dsn: str
) -> None:
    publish(settings, b.book(gpus=3))
    take(open_ingress(), 1)
    before = in_log(postgres_dsn)
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute('UPDATE answered_offset SET "offset" = -1')
    take(open_ingress(), 1)
    assert in_log(postgres_dsn) == before
    first, again = outcomes(settings)
    assert first == again


def test_the_same_key_twice_is_one_command_and_another_body_a_conflict(
    settings: KafkaSettings, open_ingress: Callable[[], Ingress], postgres_dsn: str
) -> None:
    for command in (b.book(gpus=3), b.book(gpus=3), b.book(gpus=4)):
        publish(settings, command)
    take(open_ingress(), 3)
    first, again, conflict = outcomes(settings)
    assert (first.command_id, first.seq_from) == (again.command_id, again.seq_from)
    assert (conflict.outcome, conflict.reason) == ("rejected", "key-reused")
    assert sum(e.type.startswith("ReservationConfirmed") for e in in_log(postgres_dsn)) == 1
    (dead,) = records(settings, topics.DEAD_LETTERS)
    assert dict(dead.headers)["dlq_reason"] == b"key-reused"


def _booked() -> bytes:
    contract, body = registry().encode(b.book(gpus=3))
    return wire(contract.id, body)


KEYED = [("lg_token", OPERATOR), ("lg_key", b"k")]


@pytest.mark.parametrize(
    ("value", "headers", "why"),
    [
        (None, KEYED, "the value is null"),
        (b"", KEYED, "not in the Confluent wire format"),
        (b"\x00\x00\x0f\xff\xffx", KEYED, "unknown-schema"),
        (_booked()[:-3], KEYED, "malformed"),
        (_booked() + b"x", KEYED, "malformed"),
        (_booked() + bytes(70_000), KEYED, "oversize"),
        (_booked(), KEYED[1:], "forbidden: the header lg_token is missing"),
        (_booked(), KEYED[:1], "the header lg_key is missing"),
        (_booked(), [("lg_token", b"stranger"), KEYED[1]], "forbidden: no principal"),
        (_booked(), [KEYED[0], ("lg_key", b"\xff")], "not UTF-8"),
        (_booked(), [KEYED[0], ("lg_key", b"a\nb")], "malformed"),
    ],
)
def test_what_is_no_command_is_set_apart_and_the_next_one_goes_on(
    settings: KafkaSettings,
    open_ingress: Callable[[], Ingress],
    postgres_dsn: str,
    value: bytes | None,
    headers: list[tuple[str, bytes]],
    why: str,
) -> None:
    raw(settings, value, headers)
    publish(settings, b.book(gpus=2))
    take(open_ingress(), 2)
    (dead,) = records(settings, topics.DEAD_LETTERS)
    about = dict(dead.headers)
    assert why in about["dlq_reason"].decode()
    assert (about["dlq_offset"], dead.value) == (b"0", value)
    assert "lg_token" not in about
    quarantined = [e for e in in_log(postgres_dsn) if e.type.startswith("CommandQuarantined")]
    assert len(quarantined) == 1
    assert outcomes(settings)[-1].outcome == "accepted"


def test_a_dead_letter_is_listed_shown_and_sent_again_under_a_token_of_ones_own(
    settings: KafkaSettings, open_ingress: Callable[[], Ingress]
) -> None:
    raw(settings, _booked(), KEYED[1:])
    ingress = open_ingress()
    take(ingress, 1)
    listed = json.loads(gpuledger(settings, "dlq", "list", "--json").stdout)["letters"]
    assert [(row["number"], row["command"]) for row in listed] == [(0, "RequestReservation.v1")]
    shown = json.loads(gpuledger(settings, "dlq", "show", "0", "--json").stdout)
    assert (shown["read"]["size"]["gpus"], shown["headers"]) == (3, {"lg_key": "k"})
    without = gpuledger(settings, "--data", "/nowhere", "dlq", "replay", "0")
    assert without.returncode == 2
    again = gpuledger(settings, "--token", OPERATOR.decode(), "dlq", "replay", "0")
    assert again.returncode == 0, again.stderr
    take(ingress, 1)
    assert outcomes(settings)[-1].outcome == "accepted"
    missing = gpuledger(settings, "dlq", "show", "7")
    assert (missing.returncode, "Traceback" in missing.stderr) == (1, False)


def test_another_tenants_reservation_is_not_found(
    settings: KafkaSettings, open_ingress: Callable[[], Ingress]
) -> None:
    publish(settings, b.book(gpus=2), token=TEAM_A)
    publish(settings, b.book(gpus=2), token=TEAM_B, first=1)
    take(open_ingress(), 2)
    mine, foreign = outcomes(settings)
    assert mine.outcome == "accepted"
    assert (foreign.outcome, foreign.reason) == ("refused", "not-found")


def test_a_database_that_is_away_pauses_the_partition_and_loses_nothing(
    settings: KafkaSettings, open_ingress: Callable[[], Ingress], gateway: Straight
) -> None:
    publish(settings, b.book(gpus=1), b.book(gpus=2))
    gateway.away = 1
    take(open_ingress(), 2)
    assert [o.offset for o in outcomes(settings)] == [0, 1]


def test_offsets_that_retention_took_before_they_were_decided_halt_ingress(
    settings: KafkaSettings, open_ingress: Callable[[], Ingress]
) -> None:
    publish(settings, b.book(gpus=1), b.book(gpus=2), b.book(gpus=3))
    place = TopicPartition(settings.prefix + topics.COMMANDS, 0)
    ingress = open_ingress()
    take(ingress, 3)
    publish(settings, b.book(gpus=4), b.book(gpus=5), first=3)
    ingress.close()
    with topics.admin(settings) as client:
        client.delete_records({place: 5})
    with pytest.raises(IngressHalted, match="3 to 4 are gone"):
        open_ingress()

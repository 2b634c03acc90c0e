"""Dead letters: what was set apart, looked at, and sent again by whoever answers for it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kafka import KafkaProducer, TopicPartition

from connectors.kafka import topics
from connectors.kafka.commands import KEY, TOKEN
from connectors.kafka.outcomes import PUBLISH_SECONDS_MAX
from connectors.kafka.records import BadRecord, Header, header, number, unwire
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.tail import POLL_MS, consumer_of
from schemas.registry import Registry


class NoSuchLetter(LookupError):
    """There is no dead letter with that number."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that was set apart: its number among them, where it came from, and why."""

    number: int
    topic: str
    partition: int
    offset: int
    reason: str
    command: str
    """Its contract as far as it can be told; empty when not."""
    value: bytes | None
    headers: Sequence[Header]


def letters(settings: KafkaSettings, registry: Registry, first: int = 0) -> Iterator[DeadLetter]:
    """The dead letters from a number on. Raises kafka-python's `KafkaError`."""
    place = TopicPartition(settings.prefix + topics.DEAD_LETTERS, 0)
    consumer = consumer_of(settings)
    try:
        consumer.assign([place])
        begin = consumer.beginning_offsets([place])[place]
        end = consumer.end_offsets([place])[place]
        consumer.seek(place, max(begin, first))
        while consumer.position(place) < end:
            for record in consumer.poll(POLL_MS).get(place, ()):
                yield _letter(record.offset, record.value, record.headers, registry)
    finally:
        consumer.close()


def letter(settings: KafkaSettings, registry: Registry, at: int) -> DeadLetter:
    """One of them. Raises `NoSuchLetter`, kafka-python's `KafkaError`."""
    found = next(letters(settings, registry, at), None)
    if found is None or found.number != at:
        raise NoSuchLetter(f"there is no dead letter {at}")
    return found


def _letter(
    at: int, value: bytes | None, headers: Sequence[Header], registry: Registry
) -> DeadLetter:
    try:
        contract = registry.by_id.get(unwire(value)[0])
    except BadRecord:
        contract = None
    return DeadLetter(
        at,
        header(headers, "dlq_topic").decode(),
        number(headers, "dlq_partition"),
        number(headers, "dlq_offset"),
        header(headers, "dlq_reason").decode(errors="replace"),
        contract.type if contract else "",
        value,
        [(name, content) for name, content in headers if not name.startswith("dlq_")],
    )


def replay(settings: KafkaSettings, dead: DeadLetter, token: str, key: str = "") -> int:
    """Publish a dead letter again under a token, and a new key if one is given; its new offset.

    Raises kafka-python's `KafkaError`.
    """
    headers = [(name, value) for name, value in dead.headers if not key or name != KEY]
    if key:
        headers.append((KEY, key.encode()))
    producer = KafkaProducer(**settings.client, acks="all")
    try:
        sent = producer.send(
            settings.prefix + topics.COMMANDS,
            key=f"{dead.topic}/{dead.partition}/{dead.offset}".encode(),
            value=dead.value,
            headers=[*headers, (TOKEN, token.encode())],
            partition=dead.partition,
        )
        return int(sent.get(PUBLISH_SECONDS_MAX).offset)
    finally:
        producer.close(timeout=1)

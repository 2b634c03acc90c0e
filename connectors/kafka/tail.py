"""The last record of a partition, behind whatever transaction markers there are."""

from dataclasses import dataclass
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from connectors.kafka.records import event_of
from connectors.kafka.settings import KafkaSettings
from domain.journal import StoredEvent

MARKERS_MAX = 64
"""How far behind the end a record is looked for at first; doubled until one is found."""
POLL_MS = 500


@dataclass(frozen=True, slots=True)
class Tail:
    """The last event on a partition, where it lies, and its writer's epoch."""

    event: StoredEvent
    epoch: int
    offset: int


def consumer_of(settings: KafkaSettings, **more: Any) -> KafkaConsumer:  # noqa: ANN401 - its own settings
    """A consumer that belongs to no group and sees committed records only."""
    return KafkaConsumer(
        **settings.client,
        isolation_level="read_committed",
        enable_auto_commit=False,
        group_id=None,
        **more,
    )


def tail_of(settings: KafkaSettings, topic: str, partition: int) -> Tail | None:
    """The last committed event of a partition; None when it has none.

    Raises kafka-python's `KafkaError`, and `BadRecord` when the last record is none of ours.
    """
    place = TopicPartition(topic, partition)
    consumer = consumer_of(settings)
    try:
        consumer.assign([place])
        begin = consumer.beginning_offsets([place])[place]
        end = consumer.end_offsets([place])[place]
        back = MARKERS_MAX
        while end > begin:
            first = max(begin, end - back)
            last = _last_between(consumer, place, first, end)
            if last is not None:
                event, epoch = event_of(last.value, last.headers)
                return Tail(event, epoch, last.offset)
            if first == begin:
                return None
            back *= 2
        return None
    finally:
        consumer.close()


def _last_between(consumer: KafkaConsumer, place: TopicPartition, first: int, end: int) -> Any:  # noqa: ANN401 - a record
    """The last record of some offsets; None when there are only markers."""
    consumer.seek(place, first)
    found = None
    while consumer.position(place) < end:
        for record in consumer.poll(POLL_MS).get(place, ()):
            if record.offset < end:
                found = record
    return found

"""The last record of a partition, behind whatever transaction markers there are."""

import time
from dataclasses import dataclass
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaTimeoutError

from connectors.kafka.records import event_of
from connectors.kafka.settings import KafkaSettings
from domain.journal import StoredEvent
from schemas.registry import registry

MARKERS_MAX = 64
"""How far behind the end a record is looked for at first; doubled until one is found."""
POLL_MS = 500
STILL_SECONDS_MAX = 30.0
"""How long a reader waits for records that the broker says it has."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The last event on a partition, where it lies, and its writer's epoch."""

    event: StoredEvent
    epoch: int
    offset: int


class Patience:
    """How long reading may stand still before it is given up."""

    def __init__(self) -> None:
        """It begins now."""
        self._until = time.monotonic() + STILL_SECONDS_MAX
        self._place: object = None

    def must_last(self, place: object) -> None:
        """Go on if the place is another one, or not for long the same. Raises `KafkaTimeoutError`."""
        now = time.monotonic()
        if place != self._place:
            self._place, self._until = place, now + STILL_SECONDS_MAX
        elif now > self._until:
            raise KafkaTimeoutError(f"nothing came for {STILL_SECONDS_MAX:g} s at offset {place}")


def consumer_of(settings: KafkaSettings, **more: Any) -> KafkaConsumer:  # noqa: ANN401 - its own settings
    """A consumer that belongs to no group and sees committed records only."""
    return KafkaConsumer(
        **settings.client,
        isolation_level="read_committed",
        enable_auto_commit=False,
        group_id=None,
        **more,
    )


def last_record(settings: KafkaSettings, topic: str, partition: int) -> Any:  # noqa: ANN401 - a record
    """The last committed record of a partition; None when it has none.

    Raises kafka-python's `KafkaError`.
    """
    place = TopicPartition(topic, partition)
    consumer = consumer_of(settings, auto_offset_reset="none")
    try:
        consumer.assign([place])
        begin = consumer.beginning_offsets([place])[place]
        end = consumer.end_offsets([place])[place]
        back = MARKERS_MAX
        while end > begin:
            first = max(begin, end - back)
            last = _last_between(consumer, place, first, end)
            if last is not None or first == begin:
                return last
            back *= 2
        return None
    finally:
        consumer.close()


def tail_of(settings: KafkaSettings, topic: str, partition: int) -> Tail | None:
    """The last committed event of a partition; None when it has none.

    Raises kafka-python's `KafkaError`, and `BadRecord` when the last record is none of ours.
    """
    last = last_record(settings, topic, partition)
    if last is None:
        return None
    event, epoch = event_of(last, registry())
    return Tail(event, epoch, last.offset)


def _last_between(consumer: KafkaConsumer, place: TopicPartition, first: int, end: int) -> Any:  # noqa: ANN401 - a record
    """The last record of some offsets; None when there are only markers."""
    consumer.seek(place, first)
    found = None
    patience = Patience()
    while consumer.position(place) < end:
        patience.must_last(consumer.position(place))
        for record in consumer.poll(POLL_MS).get(place, ()):
            if record.offset < end:
                found = record
    return found

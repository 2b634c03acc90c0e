"""Reading the public copy: every event once, in order, or a halt that names what is missing.

Partition order is the order of positions, so one number proves that nothing is missing; the leaf of
each event is made anew from its bytes, and the tree over them is the tree of the log.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from kafka import TopicPartition
from kafka.errors import OffsetOutOfRangeError

from connectors.kafka import topics
from connectors.kafka.records import BadRecord, Record, event_of
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.tail import Patience, consumer_of
from domain.journal import StoredEvent
from domain.merkle import Tree
from schemas.registry import registry

POLL_MS = 500
RECORDS_MAX = 2_000


class Gap(Exception):
    """Events are missing; the words name the first one."""


class Foreign(Exception):
    """The topic holds what is no event of this shard; the words say where."""


class PlacedRecord(Record, Protocol):
    """A record and where it lies."""

    @property
    def offset(self) -> int:
        """Its offset."""
        ...


@dataclass(frozen=True, slots=True)
class Position:
    """Where a reader is: the last event that it gave, and where the next one lies."""

    seq: int = 0
    offset: int = -1
    """-1 is the beginning of the partition."""
    epoch: int = 0


class EventReader:
    """Reads one shard's events from a stored position on."""

    def __init__(
        self, settings: KafkaSettings, shard: int = 0, start: Position | None = None
    ) -> None:
        """Go on behind a position; at the beginning when none is given.

        Raises kafka-python's `KafkaError`, and `Gap` when the position is no longer there.
        """
        self._place = TopicPartition(settings.prefix + topics.EVENTS, shard)
        self.position = start or Position()
        self._consumer = consumer_of(
            settings,
            auto_offset_reset="none",
            max_poll_records=RECORDS_MAX,
            max_partition_fetch_bytes=8 << 20,
        )
        self._consumer.assign([self._place])
        first = self._consumer.beginning_offsets([self._place])[self._place]
        wanted = max(0, self.position.offset)
        if first > wanted:
            self._consumer.close()
            raise Gap(f"{self._place.topic} begins at offset {first}, {wanted} is gone")
        self._consumer.seek(self._place, wanted)

    def skip_to(self, after: int) -> None:
        """Go on behind an event, found by halving: order on the partition is order of positions.

        What is skipped is not looked at. Raises `Foreign`, kafka-python's `KafkaError`.
        """
        low = int(self._consumer.beginning_offsets([self._place])[self._place])
        high = self.end()
        while low < high:
            middle = (low + high) // 2
            found = self._first_between(middle, high)
            if found is None or found[0] > after:
                high = middle
            else:
                low = found[1] + 1
        self._consumer.seek(self._place, low)
        self.position = Position(after, low)

    def _first_between(self, first: int, end: int) -> tuple[int, int] | None:
        """Position and offset of the first event of some offsets; None when they are markers."""
        self._consumer.seek(self._place, first)
        patience = Patience()
        while (place := int(self._consumer.position(self._place))) < end:
            patience.must_last(place)
            for record in self._consumer.poll(POLL_MS, max_records=1).get(self._place, ()):
                if record.offset >= end:
                    return None
                return self._event(record)[0].seq, int(record.offset)
        return None

    def _event(self, record: PlacedRecord) -> tuple[StoredEvent, int]:
        try:
            return event_of(record, registry())
        except BadRecord as error:
            raise Foreign(f"{self._place.topic} at offset {record.offset}: {error}") from error

    def end(self) -> int:
        """The offset behind the last committed record."""
        return int(self._consumer.end_offsets([self._place])[self._place])

    def read(self) -> list[StoredEvent]:
        """The next events; none when there are none for half a second.

        Raises `Gap`, `Foreign`, kafka-python's `KafkaError`.
        """
        try:
            records = self._consumer.poll(POLL_MS).get(self._place, ())
        except OffsetOutOfRangeError as error:
            raise Gap(f"offset {self.position.offset} of {self._place.topic} is gone") from error
        found: list[StoredEvent] = []
        for record in records:
            try:
                event, epoch = self._event(record)
            except Foreign:
                if found:
                    return self._up_to(record.offset, found)
                raise
            if event.seq > self.position.seq + 1:
                if found:
                    return self._up_to(record.offset, found)
                missing = self.position.seq + 1
                raise Gap(f"event {missing} is missing: offset {record.offset} holds {event.seq}")
            if event.seq == self.position.seq + 1:
                found.append(event)
                self.position = Position(event.seq, record.offset + 1, epoch)
        return found

    def _up_to(self, offset: int, found: list[StoredEvent]) -> list[StoredEvent]:
        """What came before something that is wrong; the next call meets it first."""
        self._consumer.seek(self._place, offset)
        return found

    def read_all(self) -> Iterator[list[StoredEvent]]:
        """The events up to the end as it is now, a batch at a time."""
        end = self.end()
        patience = Patience()
        while (place := int(self._consumer.position(self._place))) < end:
            patience.must_last(place)
            events = self.read()
            if events:
                yield events

    def close(self) -> None:
        """Let go of the broker."""
        self._consumer.close()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Closed."""
        self.close()


def tree_of(reader: EventReader, tree: Tree | None = None) -> Tree:
    """The Merkle tree over all that a reader has before it, on top of an earlier one."""
    grown = tree or Tree()
    for events in reader.read_all():
        grown, _ = grown.grown([event.leaf for event in events])
    return grown

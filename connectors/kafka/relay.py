"""The relay: every event of a shard's log to its partition, in order, once.

A batch is one Kafka transaction under a transactional id per shard: whoever begins later fences
whoever began before. Where to go on is asked of the partition itself, never remembered; the mark in
the database is there to notice that the topic lost records, or that the log went back.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import structlog
from kafka import KafkaProducer
from kafka.errors import KafkaError, ProducerFencedError

from connectors.kafka import topics
from connectors.kafka.records import BadRecord, record_of
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.tail import Tail, tail_of
from domain.facts.shard import LeaseTaken
from domain.journal import Head, JournalUnavailable, Log, StoredEvent
from domain.relaying import Mark, Marks
from schemas.registry import Registry

BATCH_EVENTS_MAX = 1_000
TRANSACTION_SECONDS_MAX = 15
PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.5, 15.0
TURN_SECONDS = 1.0

_log = structlog.get_logger("relay")


class Halted(Exception):
    """Topic and log contradict each other: nothing may go on until somebody has looked."""


class HeadLog(Log, Protocol):
    """A log that says where it ends."""

    shard: int

    def head(self) -> Head | None:
        """Where it ends; None before its first writer came."""


class Relay:
    """One shard's relay, from the tail of its partition on."""

    def __init__(
        self, log: HeadLog, marks: Marks, registry: Registry, settings: KafkaSettings
    ) -> None:
        """A relay to be; `open` finds out where to go on."""
        self._log = log
        self._marks = marks
        self._registry = registry
        self._settings = settings
        self._topic = settings.prefix + topics.EVENTS
        self._producer: KafkaProducer | None = None
        self._mark = Mark(0, 0, "")
        self._offset = -1

    @property
    def seq(self) -> int:
        """The last event that is known to be on the topic."""
        return self._mark.seq

    def open(self) -> None:
        """Fence every other relay of the shard, and find the last event on the topic.

        Raises `Halted`, kafka-python's `KafkaError`, `JournalUnavailable`.
        """
        topics.must_be_safe(self._settings, [topics.EVENTS])
        self.close()
        self._producer = KafkaProducer(
            **self._settings.client,
            transactional_id=f"{self._settings.prefix}relay-{self._log.shard}",
            transaction_timeout_ms=TRANSACTION_SECONDS_MAX * 1000,
            acks="all",
            linger_ms=5,
            batch_size=1 << 18,
            max_block_ms=TRANSACTION_SECONDS_MAX * 1000,
            delivery_timeout_ms=2 * TRANSACTION_SECONDS_MAX * 1000,
            request_timeout_ms=TRANSACTION_SECONDS_MAX * 1000,
        )
        # What a former relay left open is aborted here, so the tail that is read next is final.
        self._producer.init_transactions()
        topic_id = topics.topic_id(self._settings, topics.EVENTS)
        tail = tail_of(self._settings, self._topic, self._log.shard)
        self._compare(tail, topic_id)
        self._offset = tail.offset if tail else -1
        seq, epoch = (tail.event.seq, tail.epoch) if tail else (0, 0)
        self._mark = Mark(seq, epoch, topic_id)
        self._marks.move(self._mark)
        _log.info("relay_opened", shard=self._log.shard, seq=seq, offset=self._offset)

    def _compare(self, tail: Tail | None, topic_id: str) -> None:
        """Topic, mark and log must tell one story. Raises `Halted`."""
        mark = self._marks.mark()
        if mark.halted:
            raise Halted(mark.halted)
        seq = tail.event.seq if tail else 0
        if seq < mark.seq:
            made_anew = "made anew" if topic_id != mark.topic_id else "cut"
            self._halt(
                f"{self._topic} ends at {seq}, but {mark.seq} was confirmed: it was {made_anew}"
            )
        head = self._log.head()
        if tail is None:
            return
        if head is None or head.seq < seq:
            self._halt(
                f"fork: {self._topic} ends at {seq}, the log at {head.seq if head else 0}; "
                "the database is older than its topic (`gpuledger restore --catch-up` mends it)"
            )
        (event,) = self._log.read(seq - 1, 1)
        if event.leaf != tail.event.leaf:
            self._halt(f"fork: event {seq} on {self._topic} is another one than in the log")

    def _halt(self, reason: str) -> None:
        self._marks.halt(reason)
        _log.error("relay_halted", reason=reason)
        raise Halted(reason)

    def step(self) -> int:
        """Send the next batch as one transaction; how many events it had.

        Raises `Halted`, kafka-python's `KafkaError` (then `open` again), `JournalUnavailable`.
        """
        events = self._log.read(self._mark.seq, BATCH_EVENTS_MAX)
        if not events:
            return 0
        assert events[0].seq == self._mark.seq + 1, "the log has no gap"
        with self._transaction() as producer:
            epoch, sent = self._mark.epoch, []
            for event, epoch in self._with_epochs(events):
                record = record_of(event, self._registry, self._log.shard, epoch)
                sent.append(
                    producer.send(
                        self._topic,
                        partition=self._log.shard,
                        key=record.key,
                        value=record.value,
                        headers=list(record.headers),
                    )
                )
            producer.flush()
            self._must_follow(sent)
        self._mark = Mark(events[-1].seq, epoch, self._mark.topic_id)
        self._marks.move(self._mark)
        return len(events)

    @contextmanager
    def _transaction(self) -> Iterator[KafkaProducer]:
        """All that is sent inside, or nothing of it."""
        assert self._producer is not None, "open comes first"
        self._producer.begin_transaction()
        try:
            yield self._producer
        except Halted:
            self._producer.abort_transaction()
            raise
        self._producer.commit_transaction()

    def _must_follow(self, sent: Sequence[Any]) -> None:
        """The records lie behind all earlier ones, one by one. Raises `Halted`."""
        offsets = [future.get(TRANSACTION_SECONDS_MAX).offset for future in sent]
        if offsets[0] <= self._offset:
            self._halt(
                f"{self._topic} gave offset {offsets[0]} after {self._offset}: it was made anew"
            )
        assert offsets == list(range(offsets[0], offsets[0] + len(sent))), "a batch lies together"
        self._offset = offsets[-1]

    def _with_epochs(self, events: Sequence[StoredEvent]) -> Iterator[tuple[StoredEvent, int]]:
        """Each event with the epoch of its writer: the last lease that was taken before it."""
        epoch = self._mark.epoch
        for event in events:
            if event.type.startswith("LeaseTaken."):
                taken: LeaseTaken = self._registry.decode(event.type, event.body)
                epoch = taken.epoch
            yield event, epoch

    def close(self) -> None:
        """Let go of the broker; what is not committed is aborted by whoever comes next."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close(timeout=1)


def accepted(settings: KafkaSettings, log: HeadLog, before: Mark) -> tuple[Mark, int]:
    """The mark of a topic as it is now, and how many events that were on it are to be sent again.

    Raises `Halted` where the topic has what the log has not: that is no loss, and nobody may accept it.
    """
    name = settings.prefix + topics.EVENTS
    tail = tail_of(settings, name, log.shard)
    topic_id = topics.topic_id(settings, topics.EVENTS)
    if tail is None:
        return Mark(0, 0, topic_id), before.seq
    stored = log.read(tail.event.seq - 1, 1)
    if not stored or stored[0].leaf != tail.event.leaf:
        raise Halted(
            f"fork: event {tail.event.seq} of {name} is not in the log; "
            "`gpuledger restore --catch-up` mends a database that is older than its topic"
        )
    return Mark(tail.event.seq, tail.epoch, topic_id), max(0, before.seq - tail.event.seq)


def run(
    relay: Relay,
    marks: Marks,
    wait: Callable[[float], None],
    stopped: Callable[[], bool],
    follow: Callable[[int], None] = lambda _: None,
) -> None:
    """Relay until told to stop, through whatever brokers and databases do meanwhile.

    `wait` returns when something was written, or after so many seconds; `follow` hears how far the
    topic has come. Raises `Halted`.
    """
    pause = PAUSE_SECONDS_MIN
    is_open = False
    while not stopped():
        try:
            if not marks.take_turn():
                is_open = False
                time.sleep(TURN_SECONDS)
                continue
            if not is_open:
                relay.open()
                is_open = True
            sent = relay.step()
            follow(relay.seq)
            if sent == 0:
                wait(TURN_SECONDS)
            pause = PAUSE_SECONDS_MIN
        except (KafkaError, JournalUnavailable, topics.TopicsUnsafe, BadRecord) as error:
            is_open = False
            relay.close()
            fenced = isinstance(error, ProducerFencedError)
            _log.warning("relay_waits", error=f"{type(error).__name__}: {error}", fenced=fenced)
            time.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)
    relay.close()

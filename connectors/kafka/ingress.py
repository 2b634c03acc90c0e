"""Ingress: commands from their topic to the sequencer, in the order of each partition.

The ledger writes each command's place in the commit that decides it, and remembers outcomes under
their keys. So ingress begins again behind what it *answered*: what was decided but not answered is
asked again, and gets the outcome that it had.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from kafka import TopicPartition
from kafka.errors import KafkaError, OffsetOutOfRangeError

from connectors.kafka import topics
from connectors.kafka.commands import CommandReader, unreadable
from connectors.kafka.outcomes import OutcomeTopic
from connectors.kafka.records import BadRecord
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.tail import consumer_of
from domain.ingress import IngressPlaces
from domain.journal import JournalUnavailable
from domain.record import IngressPlace
from domain.refusals import Reason
from domain.submission import CommandGateway, Outcome, OutcomeKind, Submission
from schemas.registry import Registry

INFLIGHT_COMMANDS_MAX = 500
"""Commands that wait for their outcome at once: more are not even read."""
POLL_MS = 200
PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.5, 15.0
STUCK_SECONDS_MAX = 60.0
"""A partition that has records and gives none for so long gets a new consumer."""

_log = structlog.get_logger("ingress")


class IngressHalted(Exception):
    """Commands are gone from their topic that were never decided; the words say which."""


class PartitionStuck(KafkaError):  # type: ignore[misc]
    """A partition has records and gives none."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A record of the topic, and what is asked of the ledger for it."""

    record: Any
    submission: Submission
    fault: str = ""
    """Why it is no command; empty when it is one."""


class Ingress:
    """One process that takes in all partitions."""

    def __init__(
        self,
        settings: KafkaSettings,
        reader: CommandReader,
        gateway: CommandGateway,
        places: IngressPlaces,
        registry: Registry,
    ) -> None:
        """Ingress to be; `open` finds out where to go on."""
        self._settings = settings
        self._reader = reader
        self._gateway = gateway
        self._places = places
        self._registry = registry
        self._topic = settings.prefix + topics.COMMANDS
        self._consumer: Any = None
        self._outcomes: OutcomeTopic | None = None
        self._resume_at: dict[TopicPartition, float] = {}
        self._heard_at: dict[TopicPartition, float] = {}

    def open(self) -> None:
        """Every partition, behind the last command that was answered.

        Raises `IngressHalted`, `TopicsUnsafe`, kafka-python's `KafkaError`, `JournalUnavailable`.
        """
        topics.must_be_safe(self._settings, [topics.COMMANDS, topics.OUTCOMES, topics.DEAD_LETTERS])
        self.close()
        self._outcomes = OutcomeTopic(self._settings, self._registry)
        self._consumer = consumer_of(
            self._settings,
            auto_offset_reset="none",
            max_poll_records=INFLIGHT_COMMANDS_MAX,
        )
        numbers = self._consumer.partitions_for_topic(self._topic) or set()
        assigned = [TopicPartition(self._topic, number) for number in sorted(numbers)]
        self._consumer.assign(assigned)
        begin = self._consumer.beginning_offsets(assigned)
        decided, answered = self._places.decided(self._topic), self._places.answered(self._topic)
        for place in assigned:
            known = answered.get(place.partition, decided.get(place.partition))
            wanted = begin[place] if known is None else known + 1
            if wanted < begin[place]:
                raise IngressHalted(
                    f"{self._topic}/{place.partition}: offsets {wanted} to {begin[place] - 1} are "
                    "gone and were never answered; retention was too short"
                )
            self._consumer.seek(place, wanted)
        self._resume_at, self._heard_at = {}, dict.fromkeys(assigned, time.monotonic())
        _log.info("ingress_opened", partitions=len(assigned))

    def step(self) -> int:
        """Take in what is there; how many commands were answered.

        Raises `IngressHalted`, kafka-python's `KafkaError`, `JournalUnavailable`.
        """
        self._resume()
        try:
            polled = self._consumer.poll(POLL_MS)
        except OffsetOutOfRangeError as error:
            raise IngressHalted(f"{self._topic}: an offset is gone: {error}") from error
        self._watch(polled)
        done: dict[int, int] = {}
        answered = 0
        for place, records in polled.items():
            taken = [self._take(place, record) for record in records]
            outcomes = self._gateway.submit([each.submission for each in taken])
            whole = self._until_unavailable(place, taken, outcomes)
            for each, outcome in zip(taken[:whole], outcomes, strict=False):
                self._answer(each, outcome)
            if whole:
                done[place.partition] = taken[whole - 1].record.offset
                answered += whole
        if done:
            assert self._outcomes is not None, "open comes first"
            self._outcomes.flush()
            self._places.answer(self._topic, done)
        return answered

    def _take(self, place: TopicPartition, record: Any) -> Taken:  # noqa: ANN401 - kafka-python's
        where = IngressPlace(place.topic, place.partition, record.offset)
        try:
            return Taken(record, self._reader.read(record.value, record.headers, where))
        except BadRecord as error:
            return Taken(record, unreadable(record.value, where, str(error)), str(error))

    def _until_unavailable(
        self, place: TopicPartition, taken: Sequence[Taken], outcomes: Sequence[Outcome]
    ) -> int:
        """How many were decided; the rest is read again after a pause of this partition."""
        for number, outcome in enumerate(outcomes):
            if outcome.kind is OutcomeKind.UNAVAILABLE:
                self._consumer.seek(place, taken[number].record.offset)
                self._consumer.pause(place)
                self._resume_at[place] = time.monotonic() + PAUSE_SECONDS_MIN
                _log.warning("partition_paused", place=str(place), why=outcome.problem)
                return number
        return len(outcomes)

    def _answer(self, taken: Taken, outcome: Outcome) -> None:
        """Tell the outcome; what can never be decided is set apart as well."""
        assert self._outcomes is not None, "open comes first"
        fault = taken.fault or (outcome.problem if outcome.kind is OutcomeKind.QUARANTINED else "")
        if outcome.kind is OutcomeKind.REJECTED:
            fault = self._rejected(taken, outcome)
        if fault:
            record, place = taken.record, taken.submission.ingress
            assert place is not None, "it came from Kafka"
            self._outcomes.set_apart(record.value, record.headers, place, fault)
        if not taken.fault:
            self._outcomes.tell(taken.submission, outcome)

    def _rejected(self, taken: Taken, outcome: Outcome) -> str:
        """A command that claims nothing is recorded as set apart, unless its key is another's.

        What was wrong with it may quote it, so the log gets the reason's code alone.
        """
        assert outcome.refusal is not None, "a rejection has its reason"
        refusal = outcome.refusal
        problem = refusal.facts.get("problem", "")
        why = f"{refusal.reason.code}: {problem}" if problem else refusal.reason.code
        if refusal.reason is not Reason.KEY_REUSED:
            place = taken.submission.ingress
            assert place is not None, "it came from Kafka"
            (recorded,) = self._gateway.submit(
                [unreadable(taken.record.value, place, refusal.reason.code)]
            )
            if recorded.kind is OutcomeKind.UNAVAILABLE:
                raise JournalUnavailable(recorded.problem)
        return why

    def _resume(self) -> None:
        now = time.monotonic()
        for place, due in list(self._resume_at.items()):
            if now >= due:
                self._consumer.resume(place)
                del self._resume_at[place]

    def _watch(self, polled: Mapping[TopicPartition, object]) -> None:
        """Notice a partition that has records and gives none. Raises `PartitionStuck`."""
        now = time.monotonic()
        for place in self._heard_at:
            if place in polled or place in self._resume_at:
                self._heard_at[place] = now
            elif now - self._heard_at[place] > STUCK_SECONDS_MAX:
                end = self._consumer.end_offsets([place])[place]
                if self._consumer.position(place) < end:
                    raise PartitionStuck(f"{place} gives nothing before {end}")
                self._heard_at[place] = now

    def close(self) -> None:
        """Let go of the brokers."""
        if self._consumer is not None:
            self._consumer.close()
        if self._outcomes is not None:
            self._outcomes.close()
        self._consumer = self._outcomes = None


def run(ingress: Ingress, stopped: Callable[[], bool]) -> None:
    """Take in commands until told to stop, through whatever is away meanwhile.

    Raises `IngressHalted`.
    """
    pause = PAUSE_SECONDS_MIN
    is_open = False
    while not stopped():
        try:
            if not is_open:
                ingress.open()
                is_open = True
            ingress.step()
            pause = PAUSE_SECONDS_MIN
        except (KafkaError, JournalUnavailable, ConnectionError, topics.TopicsUnsafe) as error:
            is_open = False
            ingress.close()
            _log.warning("ingress_waits", error=f"{type(error).__name__}: {error}")
            time.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)
    ingress.close()

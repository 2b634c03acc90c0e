"""Outcomes and dead letters: what ingress tells of each command, at least once."""

from collections.abc import Sequence

from kafka import KafkaProducer

from connectors.kafka import topics
from connectors.kafka.commands import TOKEN
from connectors.kafka.records import Header, wire
from connectors.kafka.settings import KafkaSettings
from domain.messages import CommandOutcome
from domain.record import IngressPlace
from domain.submission import Outcome, Submission
from schemas.registry import Registry

PUBLISH_SECONDS_MAX = 30


def told(submission: Submission, outcome: Outcome) -> CommandOutcome:
    """An outcome as its publisher gets it."""
    place = submission.ingress
    assert place is not None, "it came from Kafka"
    refusal = outcome.refusal
    subject = outcome.facts[0].stream if outcome.facts and refusal is None else ""
    return CommandOutcome(
        outcome.command_id,
        submission.key,
        submission.type,
        outcome.kind.value,
        subject,
        refusal.reason.code if refusal else outcome.problem,
        dict(refusal.facts) if refusal else {},
        refusal.offers if refusal else (),
        outcome.seq_from,
        outcome.seq_to,
        place.topic,
        place.partition,
        place.offset,
    )


class OutcomeTopic:
    """Publishes outcomes and dead letters; `flush` returns when the brokers have them."""

    def __init__(self, settings: KafkaSettings, registry: Registry) -> None:
        """Connect. Raises kafka-python's `KafkaError`."""
        self._registry = registry
        self._prefix = settings.prefix
        self._producer = KafkaProducer(**settings.client, acks="all", linger_ms=5)
        self._sent: list[object] = []

    def tell(self, submission: Submission, outcome: Outcome) -> None:
        """An outcome, under the command's id."""
        contract, body = self._registry.encode(told(submission, outcome))
        self._send(
            topics.OUTCOMES,
            outcome.command_id.encode(),
            wire(contract.id, body),
            [("ce_specversion", b"1.0"), ("ce_type", contract.type.encode())],
        )

    def set_apart(
        self, value: bytes | None, headers: Sequence[Header], place: IngressPlace, why: str
    ) -> None:
        """A copy of a record that is no command, without its token, and why it is none."""
        kept = [(name, content) for name, content in headers if name != TOKEN]
        about = [
            ("dlq_topic", place.topic.encode()),
            ("dlq_partition", str(place.partition).encode()),
            ("dlq_offset", str(place.offset).encode()),
            ("dlq_reason", why.encode()),
        ]
        key = f"{place.topic}/{place.partition}/{place.offset}".encode()
        self._send(topics.DEAD_LETTERS, key, value, [*kept, *about])

    def _send(self, topic: str, key: bytes, value: bytes | None, headers: Sequence[Header]) -> None:
        self._sent.append(
            self._producer.send(
                self._prefix + topic, key=key, value=value, headers=list(headers), partition=0
            )
        )

    def flush(self) -> None:
        """Wait until all of it is there. Raises kafka-python's `KafkaError`."""
        self._producer.flush(timeout=PUBLISH_SECONDS_MAX)
        sent, self._sent = self._sent, []
        for future in sent:
            future.get(PUBLISH_SECONDS_MAX)  # type: ignore[attr-defined]

    def close(self) -> None:
        """Let go of the brokers."""
        self._producer.close(timeout=1)

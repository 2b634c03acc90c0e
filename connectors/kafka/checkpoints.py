"""Signed checkpoints on their topic: what whoever reads the events can hold them against."""

import time
from collections.abc import Callable

import structlog
from kafka import KafkaProducer
from kafka.errors import KafkaError

from connectors.kafka import topics
from connectors.kafka.settings import KafkaSettings
from domain.merkle import Tree

EVERY_EVENTS = 10_000
EVERY_SECONDS = 60.0
"""A log that has grown has a new checkpoint after so many events, or after so long."""
PUBLISH_SECONDS_MAX = 5
"""A checkpoint that takes longer is tried again after `EVERY_SECONDS`."""

_log = structlog.get_logger("checkpoints")


class CheckpointTopic:
    """Signs the head of the log, and publishes it once all of its events are on Kafka."""

    def __init__(
        self,
        settings: KafkaSettings,
        tree: Callable[[], Tree],
        origin: str,
        sign: Callable[[int, bytes], str],
    ) -> None:
        """Connect when there is something to publish.

        `tree` is the log's as it is now; `sign` makes a note of a size and a root.
        """
        self._settings, self._tree = settings, tree
        self._origin, self._sign = origin, sign
        self._producer: KafkaProducer | None = None
        self._published, self._at, self._not_before = 0, 0.0, 0.0
        self._next: Tree | None = None

    def follow(self, seq: int) -> None:
        """The topic of events has come so far. Raises `JournalUnavailable`.

        What keeps a checkpoint from its topic is logged, and tried again a while later: events do
        not wait for it.
        """
        if time.monotonic() < self._not_before:
            return
        if self._next is None:
            self._next = self._due(seq)
        if self._next is None or self._next.size > seq:
            return
        try:
            self._publish(self._next)
        except KafkaError as error:
            self._not_before = time.monotonic() + EVERY_SECONDS
            _log.warning("checkpoint_waits", error=f"{type(error).__name__}: {error}")
        self._next = None

    def _due(self, seq: int) -> Tree | None:
        """The tree to sign next: the head's, if the log has grown enough or long enough ago."""
        is_late = time.monotonic() - self._at >= EVERY_SECONDS
        if seq - self._published < (1 if is_late else EVERY_EVENTS):
            return None
        return self._tree()

    def _publish(self, tree: Tree) -> None:
        if self._producer is None:
            self._producer = KafkaProducer(
                **self._settings.client, acks="all", max_block_ms=PUBLISH_SECONDS_MAX * 1000
            )
        topic = self._settings.prefix + topics.CHECKPOINTS
        note = self._sign(tree.size, tree.root).encode()
        sent = self._producer.send(topic, key=self._origin.encode(), value=note, partition=0)
        sent.get(PUBLISH_SECONDS_MAX)
        self._published, self._at = tree.size, time.monotonic()
        _log.info("checkpoint_published", size=tree.size, root=tree.root.hex())

    def close(self) -> None:
        """Let go of the broker."""
        if self._producer is not None:
            self._producer.close()

"""The topic as a log: what follows a journal can follow its public copy as well."""

from collections.abc import Iterator, Sequence

from connectors.kafka.reader import EventReader
from connectors.kafka.settings import KafkaSettings
from domain.journal import StoredEvent


class TopicLog:
    """Events behind any position; reading on from where it was is quick."""

    def __init__(self, settings: KafkaSettings, shard: int = 0) -> None:
        """Connect when it is first asked."""
        self._settings = settings
        self._shard = shard
        self._reader: EventReader | None = None
        self._left: list[StoredEvent] = []

    def read(self, after: int, limit: int) -> Sequence[StoredEvent]:
        """Events behind a position, as many as there are for now.

        Raises `Gap`, `Foreign`, kafka-python's `KafkaError`.
        """
        self._go_to(after)
        assert self._reader is not None, "it was opened"
        if not self._left:
            self._left = self._reader.read()
        given, self._left = self._left[:limit], self._left[limit:]
        return given

    def _go_to(self, after: int) -> None:
        """Be right behind a position: where reading stopped, or where it is found."""
        if self._reader is not None:
            next_seq = self._left[0].seq if self._left else self._reader.position.seq + 1
            if next_seq == after + 1:
                return
        self.close()
        self._reader = EventReader(self._settings, self._shard)
        self._reader.skip_to(after)

    def read_all(self, after: int) -> Iterator[StoredEvent]:
        """Events behind a position up to the end as it is now. Raises as `read`."""
        with EventReader(self._settings, self._shard) as reader:
            reader.skip_to(after)
            for events in reader.read_all():
                yield from events

    def close(self) -> None:
        """Let go of the broker."""
        if self._reader is not None:
            self._reader.close()
        self._reader, self._left = None, []

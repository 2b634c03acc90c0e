"""Ingress's places in PostgreSQL."""

from collections.abc import Mapping

from connectors.postgres.session import Session


class PostgresPlaces:
    """Offsets of the commands' topic, beside the log that they belong to."""

    def __init__(self, dsn: str, shard: int = 0) -> None:
        """Connect when it is first asked."""
        self._session = Session(dsn, shard)

    def decided(self, topic: str) -> Mapping[int, int]:
        """The last offset of each partition that the ledger took in."""
        return self._offsets("decided_offsets", topic)

    def answered(self, topic: str) -> Mapping[int, int]:
        """The last offset of each partition whose outcome is published."""
        return self._offsets("answered_offsets", topic)

    def _offsets(self, name: str, topic: str) -> Mapping[int, int]:
        rows = self._session.rows(name, topic=topic)
        return {row["partition"]: row["offset"] for row in rows}

    def answer(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Keep up to where outcomes are published. Raises `JournalUnavailable`."""
        self._session.rows(
            "answer_offsets",
            topic=topic,
            partitions=list(offsets),
            offsets=list(offsets.values()),
        )

    def close(self) -> None:
        """Let go of the connection."""
        self._session.close()

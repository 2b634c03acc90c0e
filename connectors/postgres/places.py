"""Ingress's places in PostgreSQL."""

from collections.abc import Mapping
from typing import Any

import psycopg

from connectors.postgres.journal import connect
from domain.journal import JournalUnavailable
from schemas.queries import queries


class PostgresPlaces:
    """Offsets of the commands' topic, beside the log that they belong to."""

    def __init__(self, dsn: str, shard: int = 0) -> None:
        """Connect when it is first asked."""
        self._dsn = dsn
        self._shard = shard
        self._sql = queries()
        self._connection: psycopg.Connection[dict[str, Any]] | None = None

    def _rows(self, name: str, **values: object) -> list[dict[str, Any]]:
        try:
            if self._connection is None or self._connection.closed or self._connection.broken:
                self._connection = connect(self._dsn)
            cursor = self._connection.execute(
                self._sql[name].encode(), {"shard": self._shard, **values}
            )
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            self.close()
            raise JournalUnavailable(str(error).strip()) from error

    def decided(self, topic: str) -> Mapping[int, int]:
        """The last offset of each partition that the ledger took in."""
        return {r["partition"]: r["offset"] for r in self._rows("decided_offsets", topic=topic)}

    def answered(self, topic: str) -> Mapping[int, int]:
        """The last offset of each partition whose outcome is published."""
        return {r["partition"]: r["offset"] for r in self._rows("answered_offsets", topic=topic)}

    def answer(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Keep up to where outcomes are published."""
        self._rows(
            "answer_offsets",
            topic=topic,
            partitions=list(offsets),
            offsets=list(offsets.values()),
        )

    def close(self) -> None:
        """Let go of the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

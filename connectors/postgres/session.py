"""A session that asks named queries of one shard, and comes back after a database was away."""

from typing import Any

import psycopg

from connectors.postgres.journal import CHANNEL, connect
from domain.journal import JournalUnavailable
from schemas.queries import queries


class Session:
    """One connection, made when it is first needed and again when it broke."""

    def __init__(self, dsn: str, shard: int = 0) -> None:
        """Nothing is connected yet."""
        self._dsn = dsn
        self._shard = shard
        self._connection: psycopg.Connection[dict[str, Any]] | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is the session that it was before."""
        return self._connection is not None and not self._connection.closed

    def _open(self) -> psycopg.Connection[dict[str, Any]]:
        if self._connection is None or self._connection.closed or self._connection.broken:
            self._connection = connect(self._dsn)
            self._connection.execute(f"LISTEN {CHANNEL}".encode())
        return self._connection

    def rows(self, name: str, **values: object) -> list[dict[str, Any]]:
        """The rows of a named query; none for one that gives none. Raises `JournalUnavailable`."""
        try:
            cursor = self._open().execute(
                queries()[name].encode(), {"shard": self._shard, **values}
            )
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            self.close()
            raise JournalUnavailable(str(error).strip()) from error

    def wait(self, seconds: float) -> None:
        """Until something is written to a log, or so many seconds. Raises `JournalUnavailable`."""
        try:
            for _ in self._open().notifies(timeout=seconds, stop_after=1):
                pass
        except psycopg.Error as error:
            self.close()
            raise JournalUnavailable(str(error).strip()) from error

    def close(self) -> None:
        """Let go of the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

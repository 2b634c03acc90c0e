"""The relay's mark and turn in PostgreSQL."""

from typing import Any

import psycopg

from connectors.postgres.journal import CHANNEL, connect
from domain.journal import JournalUnavailable
from domain.relaying import Mark
from schemas.queries import queries

_LOCKS = 0x67706C72
"""The first half of the advisory lock's key, so that other locks do not meet it."""


class PostgresMarks:
    """One relay's memory; its turn lasts as long as its session."""

    def __init__(self, dsn: str, shard: int = 0) -> None:
        """Connect when it is first asked."""
        self._dsn = dsn
        self._shard = shard
        self._sql = queries()
        self._connection: psycopg.Connection[dict[str, Any]] | None = None
        self._has_turn = False

    def _rows(self, name: str, **values: object) -> list[dict[str, Any]]:
        try:
            if self._connection is None or self._connection.closed or self._connection.broken:
                self._has_turn = False
                self._connection = connect(self._dsn)
                self._connection.execute(f"LISTEN {CHANNEL}".encode())
            cursor = self._connection.execute(
                self._sql[name].encode(), {"shard": self._shard, **values}
            )
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            self.close()
            raise JournalUnavailable(str(error).strip()) from error

    def take_turn(self) -> bool:
        """Whether this is the shard's one relay. Raises `JournalUnavailable`."""
        if not self._has_turn or self._connection is None or self._connection.closed:
            (row,) = self._rows("take_turn", lock=_LOCKS)
            self._has_turn = bool(row["taken"])
        return self._has_turn

    def mark(self) -> Mark:
        """How far the topic is known to be. Raises `JournalUnavailable`."""
        rows = self._rows("relay_mark")
        return Mark(**rows[0]) if rows else Mark(0, 0, "")

    def move(self, mark: Mark) -> None:
        """Keep how far the topic is now. Raises `JournalUnavailable`."""
        self._rows("move_relay_mark", seq=mark.seq, epoch=mark.epoch, topic_id=mark.topic_id)

    def halt(self, reason: str) -> None:
        """Keep why nothing may go on. Raises `JournalUnavailable`."""
        self._rows("halt_relay", reason=reason)

    def resume(self) -> None:
        """Somebody has looked: take away why nothing went on. Raises `JournalUnavailable`."""
        self._rows("resume_relay")

    def wait(self, seconds: float) -> None:
        """Until something is written to a log, or so many seconds. Raises `JournalUnavailable`."""
        if self._connection is None:
            return
        try:
            for _ in self._connection.notifies(timeout=seconds, stop_after=1):
                pass
        except psycopg.Error as error:
            self.close()
            raise JournalUnavailable(str(error).strip()) from error

    def close(self) -> None:
        """Let go of the connection, and of the turn with it."""
        connection, self._connection = self._connection, None
        self._has_turn = False
        if connection is not None:
            connection.close()

"""The relay's mark and turn in PostgreSQL."""

from connectors.postgres.session import Session
from domain.relaying import Mark

_LOCKS = 0x67706C72
"""The first half of the advisory lock's key, so that other locks do not meet it."""


class PostgresMarks:
    """One relay's memory; its turn lasts as long as its session."""

    def __init__(self, dsn: str, shard: int = 0) -> None:
        """Connect when it is first asked."""
        self._session = Session(dsn, shard)
        self._has_turn = False

    def take_turn(self) -> bool:
        """Whether this is the shard's one relay. Raises `JournalUnavailable`."""
        if not self._has_turn or not self._session.is_open:
            (row,) = self._session.rows("take_turn", lock=_LOCKS)
            self._has_turn = bool(row["taken"])
        return self._has_turn

    def mark(self) -> Mark:
        """How far the topic is known to be. Raises `JournalUnavailable`."""
        rows = self._session.rows("relay_mark")
        return Mark(**rows[0]) if rows else Mark(0, 0, "")

    def move(self, mark: Mark) -> None:
        """Keep how far the topic is now. Raises `JournalUnavailable`."""
        self._session.rows(
            "move_relay_mark", seq=mark.seq, epoch=mark.epoch, topic_id=mark.topic_id
        )

    def halt(self, reason: str) -> None:
        """Keep why nothing may go on. Raises `JournalUnavailable`."""
        self._session.rows("halt_relay", reason=reason)

    def accept(self, mark: Mark) -> None:
        """Somebody accepts the topic as it is, losses and all. Raises `JournalUnavailable`."""
        self._session.rows("accept_topic", seq=mark.seq, epoch=mark.epoch, topic_id=mark.topic_id)

    def resume(self) -> None:
        """Somebody has looked: take away why nothing went on. Raises `JournalUnavailable`."""
        self._session.rows("resume_relay")

    def wait(self, seconds: float) -> None:
        """Until something is written to a log, or so many seconds. Raises `JournalUnavailable`."""
        self._session.wait(seconds)

    def close(self) -> None:
        """Let go of the connection, and of the turn with it."""
        self._has_turn = False
        self._session.close()

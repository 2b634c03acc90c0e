"""Appending a batch for certain: a commit whose end nobody saw is read back, never tried blindly."""

import structlog

from domain.journal import Batch, CommitUnknown, Fenced, Journal, JournalUnavailable

_log = structlog.get_logger("sequencer")


def append(journal: Journal, batch: Batch) -> None:
    """Append; when the connection dies in COMMIT, read whether it is there.

    Raises what `Journal.append` raises, but for `CommitUnknown`.
    """
    try:
        journal.append(batch)
    except CommitUnknown as error:
        _log.warning("commit_unknown", seq=batch.head.seq, error=str(error))
        try:
            arrived = journal.resolve(batch)
        except JournalUnavailable as unread:
            # State in memory may be behind the log: only a fresh start can know.
            raise Fenced("whether the last commit arrived cannot be read") from unread
        if not arrived:
            raise JournalUnavailable("the commit did not arrive") from error

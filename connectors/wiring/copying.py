"""A copy of the ledger beside the service, brought to the head of the log whenever it is asked for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from connectors.postgres.journal import JournalReader
from connectors.postgres.recorded import recorded
from connectors.sequencer.opening import restore
from domain.decide.transcript import follow, tell_all
from domain.evolve import evolve
from domain.ledger import Ledger
from domain.timespan import Instant
from schemas.registry import registry
from solvers.placer import LedgerPlacer
from solvers.trial import Copy


class LedgerCopy:
    """Folded when it is first asked for; later only what was recorded since. One user at a time."""

    def __init__(self, log: JournalReader, now: Callable[[], Instant] | None) -> None:
        """Of a log, under a clock; without one, time is what was recorded last."""
        self._log, self._clock = log, now
        self._lock = Lock()
        self._ledger: Ledger | None = None
        self._placer = LedgerPlacer(Instant(0))
        self._seq = 0

    @contextmanager
    def at_head(self) -> Iterator[Copy]:
        """The copy, for as long as it is used; what is tried on it has to be taken back.

        Raises `JournalUnavailable`.
        """
        with self._lock:
            try:
                now, ledger = self._folded()
            except BaseException:
                self._ledger = None
                raise
            yield Copy(ledger, self._placer, self._seq, now)

    def _folded(self) -> tuple[Instant, Ledger]:
        head = self._log.head()
        now = self._clock() if self._clock else head.recorded_at if head else Instant(0)
        ledger = self._ledger if self._ledger is not None else self._restored(now)
        for event in self._log.read_all(self._seq):
            entry = recorded(event, registry())
            evolve(ledger, entry.fact, entry.occurred_at)
            for change in ledger.changes:
                follow(self._placer, ledger, change)
            ledger.changes.clear()
            ledger.undo.forget()
            self._seq = event.seq
        self._placer.advance(now)
        return now, ledger

    def _restored(self, now: Instant) -> Ledger:
        ledger, self._seq = restore(self._log, registry(), 0)
        self._placer = LedgerPlacer(now)
        tell_all(self._placer, ledger)
        self._ledger = ledger
        return ledger

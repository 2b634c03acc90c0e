"""Folding a log into ratings: of the whole of it, and of what stood in it at each cutoff."""

from collections.abc import Callable, Iterable

from domain.facts.hardware import ActivityObserved
from domain.record import Recorded
from domain.timespan import Instant
from projections.charges import by_account
from projections.consumption import Consumption, Line
from projections.invoicing import Rated
from projections.rating import cuts_of, rate
from projections.terms import Terms

Log = Callable[[], Iterable[Recorded]]
"""Reads the log from its beginning, each time that it is called."""


class Ratings:
    """Ratings of one log, each made once.

    The log is read once to learn how late its facts come and where hours must be cut, and once
    for each rating.
    """

    def __init__(self, log: Log) -> None:
        """Learn what folding needs to know before."""
        self._log = log
        self._made: dict[int, Rated] = {}
        self._books: tuple[Consumption, list[Line]] | None = None
        self._late = 0
        self.seq = 0
        terms = Terms()
        for entry in log():
            terms.apply(entry)
            self._late = max(self._late, entry.recorded_at - started(entry))
            self.seq = entry.seq
        self._cuts = cuts_of(terms)

    def head(self) -> Rated:
        """Of everything."""
        return self.at(self.seq)

    def at(self, seq: int) -> Rated:
        """Of the facts up to a position."""
        if seq not in self._made:
            consumption, lines = self.books(seq)
            self._books = None
            charges = by_account(rate(lines, consumption.terms))
            self._made[seq] = Rated(
                seq, consumption.last, charges, consumption.terms, consumption.bookings
            )
        return self._made[seq]

    def books(self, seq: int) -> tuple[Consumption, list[Line]]:
        """The books up to a position, closed where its facts end; those made last are kept."""
        if self._books is None or self._books[0].seq != seq:
            consumption = self.consumption(seq)
            self._books = consumption, consumption.lines(consumption.last)
        return self._books

    def begun(self) -> Consumption:
        """Books with nothing in them yet, ready for this log."""
        return Consumption(grace=self._late, cuts=self._cuts)

    def consumption(self, seq: int) -> Consumption:
        """The usage that the facts up to a position tell of, not closed yet."""
        consumption = self.begun()
        for entry in self._log():
            if entry.seq > seq:
                break
            consumption.apply(entry)
        return consumption


def started(entry: Recorded) -> Instant:
    """The earliest instant that a fact speaks of as past."""
    if isinstance(entry.fact, ActivityObserved):
        return min(entry.occurred_at, entry.fact.start)
    return entry.occurred_at

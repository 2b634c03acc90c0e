"""One batch as it grows: its events, claims and outcomes, to be committed or taken back."""

from dataclasses import dataclass, field

from domain.cells import cell_steps
from domain.changes import Change
from domain.journal import Cell, Claim, StoredEvent
from domain.record import IngressPlace
from domain.submission import Outcome, OutcomeFact
from domain.timers import Timer
from domain.timespan import Instant


@dataclass(slots=True)
class Growing:
    """What a batch has come to so far. Positions and times go on from the head."""

    seq: int
    recorded_at: Instant
    events: list[StoredEvent] = field(default_factory=list)
    claims: dict[tuple[str, str], Claim] = field(default_factory=dict)
    ingress: list[IngressPlace] = field(default_factory=list)
    fired: list[Timer] = field(default_factory=list)
    outcomes: list[Outcome | None] = field(default_factory=list)

    def add(self, events: list[StoredEvent]) -> None:
        """Events that go next."""
        if events:
            self.events += events
            self.seq = events[-1].seq
            self.recorded_at = events[-1].recorded_at

    def facts_between(self, seq_from: int, seq_to: int) -> tuple[OutcomeFact, ...]:
        """The facts of this batch at some positions."""
        if not self.events:
            return ()
        first = self.events[0].seq
        return told(self.events[seq_from - first : seq_to - first + 1])


def told(events: list[StoredEvent]) -> tuple[OutcomeFact, ...]:
    """Stored events as an outcome tells them."""
    return tuple(
        OutcomeFact(e.seq, e.type, e.stream, e.stream_version, e.recorded_at, e.body)
        for e in events
    )


def net_cells(changes: list[Change]) -> tuple[list[Cell], list[Cell]]:
    """The cells that a batch removes and adds, without those that come and go inside it."""
    count: dict[Cell, int] = {}
    for cell, step in cell_steps(changes):
        left = count.get(cell, 0) + step
        if left:
            count[cell] = left
        else:
            del count[cell]
    removed = [cell for cell, left in count.items() if left < 0]
    added = [cell for cell, left in count.items() if left > 0]
    return removed, added

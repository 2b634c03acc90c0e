"""A whole ledger in memory under a virtual clock, to tell stories with."""

from typing import Any

from connectors.memory.journal import MemoryJournal, MemoryStore
from connectors.sequencer.engine import Sequencer
from connectors.sequencer.opening import open_sequencer, restore
from domain.commands import Command
from domain.ids import ReservationId
from domain.principal import Principal
from domain.reservation import Reservation
from domain.submission import Outcome, OutcomeKind, Submission
from domain.timespan import Instant
from schemas.image import image_of
from schemas.registry import registry
from tests import builders as b

SECRET = b"a secret for tests"


class World:
    """The sequencer over a journal in memory; every story ends with the promises checked."""

    def __init__(self, nodes: int = 2, **policy: Any) -> None:
        self.store = MemoryStore()
        self.now = b.T0
        self.keys = 0
        self.sequencer = self._open()
        if nodes:
            self.accept(b.open_pool(**policy))
            for number in range(1, nodes + 1):
                self.accept(b.join(f"n{number}"))
            for name in ("a", "b"):
                self.accept(b.register(name))
                self.accept(b.grant(name))

    def _open(self) -> Sequencer:
        return open_sequencer(
            MemoryJournal(self.store), registry(), holder="test", secret=SECRET, clock=None
        )

    def restart(self) -> None:
        """Another process takes the shard over."""
        self.sequencer = self._open()

    def submission(
        self,
        command: Command,
        principal: Principal = b.OPERATOR,
        key: str | None = None,
        at: Instant | None = None,
    ) -> Submission:
        self.keys += 1
        self.now = max(self.now, at or self.now)
        contract, body = registry().encode(command)
        return Submission(principal, key or f"key-{self.keys}", contract.type, body, self.now)

    def send(self, command: Command, **how: Any) -> Outcome:
        return self.sequencer.submit([self.submission(command, **how)])[0]

    def accept(self, command: Command, **how: Any) -> Outcome:
        outcome = self.send(command, **how)
        assert outcome.kind is OutcomeKind.ACCEPTED, (command, outcome)
        return outcome

    def booked(self, command: Command, **how: Any) -> Reservation:
        """The reservation that a command made."""
        outcome = self.accept(command, **how)
        ids = [f.stream.split("/")[1] for f in outcome.facts if f.stream.startswith("reservation/")]
        return self.sequencer.ledger.reservations[ReservationId(ids[-1])]

    def refused(self, command: Command, **how: Any) -> str:
        """The code of the reason why a command was refused."""
        outcome = self.send(command, **how)
        assert outcome.refusal is not None, outcome
        return outcome.refusal.reason.code

    def advance(self, to: Instant) -> None:
        """Let time go on, and everything happen that falls due."""
        self.now = max(self.now, to)
        self.sequencer.run_timers(self.now)

    def types(self, after: int = 0) -> list[str]:
        """The types of the events behind a position, without their versions."""
        return [e.type.split(".")[0] for e in self.store.events if e.seq > after]

    @property
    def seq(self) -> int:
        return self.store.head.seq

    def reservation(self, which: Reservation) -> Reservation:
        return self.sequencer.ledger.reservations[which.id]

    def nodes_of(self, which: Reservation) -> list[str]:
        """The nodes that a reservation has now."""
        current = self.reservation(which)
        now = max(self.now, current.start)
        return sorted({h.piece.node_id for h in current.holdings if h.start <= now < h.end})

    def check(self) -> None:
        """A replay ends in the same state, and the restored one goes on equally."""
        replayed, seq = restore(MemoryJournal(self.store), registry(), 0)
        assert seq == self.seq
        assert image_of(replayed) == image_of(self.sequencer.ledger)

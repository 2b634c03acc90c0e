"""What the envelopes of a whole history must say of their places, and what folding it must not meet."""

from collections import defaultdict
from dataclasses import dataclass, field

from domain.evolve import evolve
from domain.ledger import Ledger
from domain.timespan import Instant
from schemas.codec import Malformed
from schemas.envelope import Envelope
from schemas.registry import Registry, UnknownSchema


@dataclass(slots=True)
class Order:
    """Positions without a gap, recorded times that go on, and streams whose versions count up."""

    seq: int = 0
    recorded_at: int = -1
    streams: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def follow(self, said: Envelope) -> str:
        """What is wrong with the next envelope; nothing when it is in its place."""
        if said.seq != self.seq + 1:
            return f"event {self.seq + 1} is missing or not in its place: {said.seq} stands there"
        if said.recorded_at <= self.recorded_at:
            return f"event {said.seq}: recorded time does not go on"
        version = self.streams[said.stream] + 1
        if said.stream_version != version:
            return f"event {said.seq}: {said.stream} lacks its version {version}"
        self.seq, self.recorded_at = said.seq, said.recorded_at
        self.streams[said.stream] = version
        return ""


def folded(ledger: Ledger, registry: Registry, said: Envelope, body: bytes) -> str:
    """Fold an event into a state; what is wrong when it does not fit.

    The changes that it made are left in the ledger, for the caller to take.
    """
    try:
        evolve(ledger, registry.decode(said.type, body), Instant(said.occurred_at))
    except (Malformed, UnknownSchema, LookupError, AssertionError) as error:
        return f"event {said.seq} cannot be folded: {type(error).__name__}"
    ledger.undo.forget()
    return ""

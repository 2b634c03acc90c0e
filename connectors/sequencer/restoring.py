"""Restoring a log from its public copy: events as they were, and all that lies beside them anew.

Claims, exclusion cells, tiles and offsets are not on the topic; every one of them follows from the
events, by the same fold that the writer uses.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from connectors.sequencer.batching import net_cells
from domain.commands import REPORTS
from domain.evolve import evolve
from domain.facts import FACTS, hardware
from domain.facts.request import CommandQuarantined, CommandRefused
from domain.ids import command_id
from domain.journal import Batch, Claim, Head, Journal, StoredEvent, Tile
from domain.ledger import Ledger
from domain.merkle import Tree
from domain.record import IngressPlace
from domain.timespan import Instant
from schemas.envelope import Envelope, decode_envelope
from schemas.registry import Registry

NO_COMMAND = bytes(16)
_REPORTED = frozenset(fact for fact in FACTS.values() if fact.__module__ == hardware.__name__) - {
    hardware.ReleasePresumed
}
_REPORT_NAMES = frozenset(report.__name__ for report in REPORTS)


@dataclass(slots=True)
class _Command:
    """The events of one command, of which more may come."""

    envelope: Envelope
    is_report: bool
    seq_to: int


class ClaimsBack:
    """Finds the claims that events came from.

    The scope of a claim is not in the envelope, but the command's id is derived from scope and key:
    the scope is the one that gives that id.
    """

    def __init__(self, ledger: Ledger) -> None:
        """The tenants of a ledger are the scopes that there can be, besides the principal's own."""
        self._ledger = ledger
        self._scopes: dict[str, str] = {}
        self._open: _Command | None = None
        self.lost = 0
        """Claims whose scope is that of a tenant who never was registered."""

    def see(self, envelope: Envelope, fact: object) -> Claim | None:
        """Notice the next event; the claim of the command before it, once that is complete."""
        current = self._open
        if current is not None and current.envelope.command_id == envelope.command_id:
            current.seq_to = envelope.seq
            return None
        claim = self.last()
        if envelope.command_id != NO_COMMAND and envelope.key:
            self._open = _Command(envelope, _is_report(fact), envelope.seq)
        return claim

    def last(self) -> Claim | None:
        """The claim of the last command, which is complete."""
        command, self._open = self._open, None
        if command is None or command.is_report:
            return None
        e = command.envelope
        scope = self._scope(e)
        if scope is None:
            self.lost += 1
            return None
        return Claim(scope, e.key, e.command_id, e.fingerprint, e.seq, command.seq_to)

    def _scope(self, e: Envelope) -> str | None:
        likely = self._scopes.get(e.principal, f"principal/{e.principal}")
        for scope in (likely, *(f"tenant/{tenant}" for tenant in self._ledger.tenants)):
            if command_id(scope, e.key) == e.command_id.hex():
                self._scopes[e.principal] = scope
                return scope
        return None


def _is_report(fact: object) -> bool:
    """Reports of hardware take no claim, whatever they came to."""
    match fact:
        case CommandRefused(command=name) | CommandQuarantined(command=name):
            return name in _REPORT_NAMES
        case _:
            return type(fact) in _REPORTED


class Restoring:
    """A log on its way back; everything up to `head` is there, durably."""

    def __init__(self, journal: Journal, registry: Registry, ledger: Ledger, head: Head) -> None:
        """Go on from a head whose ledger is folded already; an empty one for an empty log."""
        self._journal = journal
        self._registry = registry
        self._claims = ClaimsBack(ledger)
        self.ledger = ledger
        self.head = head
        self.tree = Tree.from_bytes(head.tree)

    @property
    def claims_lost(self) -> int:
        """Commands whose claim cannot be brought back."""
        return self._claims.lost

    def append(self, events: Sequence[StoredEvent], *, is_last: bool = False) -> None:
        """Write the next events in one transaction, with all that follows from them.

        Raises what `Journal.append` raises.
        """
        claims, places = self._fold(events)
        last = self._claims.last() if is_last else None
        if last is not None:
            claims.append(last)
        tree, tiles = self.tree.grown([event.leaf for event in events])
        final = events[-1] if events else None
        head = replace(
            self.head,
            seq=final.seq if final else self.head.seq,
            recorded_at=final.recorded_at if final else self.head.recorded_at,
            tree=tree.to_bytes(),
        )
        removed, added = net_cells(self.ledger.changes)
        kept = [Tile(tile.level, tile.index, tile.hashes) for tile in tiles]
        batch = Batch(self.head, head, events, claims, removed, added, kept, places)
        self._journal.append(batch)
        self.head, self.tree = head, tree
        self.ledger.changes.clear()
        self.ledger.undo.forget()

    def _fold(self, events: Iterable[StoredEvent]) -> tuple[list[Claim], list[IngressPlace]]:
        claims: list[Claim] = []
        places: list[IngressPlace] = []
        for event in events:
            envelope = decode_envelope(event.envelope)
            fact = self._registry.decode(event.type, event.body)
            claim = self._claims.see(envelope, fact)
            if claim is not None:
                claims.append(claim)
            if envelope.topic:
                places.append(IngressPlace(envelope.topic, envelope.partition, envelope.offset))
            version = evolve(self.ledger, fact, Instant(envelope.occurred_at))
            assert version == event.stream_version, "streams grow as they were recorded"
        return claims, places

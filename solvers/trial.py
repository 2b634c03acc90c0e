"""Trying things on a copy of the ledger: whatever is written there is taken back at the end."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from domain.changes import Change, NodeOpened, SlotOpened
from domain.decide.placing import Ask, find_units
from domain.decide.transcript import Transcript, follow
from domain.fleet_state import Maintenance, Pool
from domain.ids import CommandId, TenantId
from domain.ledger import Ledger
from domain.ports import Placer
from domain.quota import Shortfall
from domain.reservation import Reservation
from domain.sizes import ReservationClass, Shape, Size, parts_of
from domain.states import NodeState
from domain.timespan import Instant, Timespan

NOBODY = CommandId("0" * 32)
"""The command that no one sent."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A ledger of one's own at a position of the log, with a placer's index that follows it."""

    ledger: Ledger
    placer: Placer
    seq: int
    now: Instant


@dataclass(frozen=True, slots=True)
class Want:
    """Units wanted by a tenant over a span: a request, or a reservation that has its place."""

    tenant_id: TenantId
    pool: Pool
    klass: ReservationClass
    size: Size
    shape: Shape
    span: Timespan

    @property
    def milli(self) -> int:
        """All of it, in milli-GPU."""
        return self.ask.parts.milli

    @property
    def ask(self) -> Ask:
        """The units, as the placer is asked for them."""
        parts = parts_of(self.size, max(1, self.pool.node_gpus(self.shape.models)))
        return Ask(self.pool, self.tenant_id, parts, self.shape, self.span)


@contextmanager
def trial(copy: Copy) -> Iterator[Transcript]:
    """A transcript over a copy; the copy is as it was when the trial is over."""
    t = Transcript(copy.ledger, copy.placer, copy.now, NOBODY)
    mark = t.mark()
    try:
        yield t
    finally:
        t.back_to(mark)


def fits(t: Transcript, want: Want) -> bool:
    """Whether there are units for a want; its answer is exact."""
    return find_units(t, want.ask) is not None


def shortfall(t: Transcript, want: Want) -> Shortfall | None:
    """The first account of the tenant's chain that does not carry a want, narrowest first."""
    has_grant = False
    for account in t.ledger.chain(want.tenant_id, want.pool.id):
        if account.grants:
            has_grant = True
            short = account.shortfall(want.klass, want.span, want.milli)
            if short is not None:
                return short
    return None if has_grant else Shortfall(want.tenant_id, 0, 0, want.span.start)


def lift(t: Transcript, holder: Reservation | Maintenance) -> None:
    """Take a holder off its units, as if it had never come."""
    first = len(t.ledger.changes)
    t.ledger.release(holder, holder.holdings)
    for change in t.ledger.changes[first:]:
        follow(t.placer, t.ledger, change)


def open_all(t: Transcript, pool: Pool) -> None:
    """Let every node and every GPU of a pool take holders, whatever state it is in."""
    for node in (t.ledger.nodes[node_id] for node_id in pool.nodes):
        for slot in sorted(node.failed_slots):
            _changed(t, SlotOpened(node.index, slot, is_open=True))
        if node.failed_slots:
            t.ledger.undo.set(node, "failed_slots", frozenset())
        if not node.is_bookable:
            t.ledger.undo.set(node, "state", NodeState.READY)
            _changed(t, NodeOpened(node.index, is_open=True))


def _changed(t: Transcript, change: Change) -> None:
    t.ledger.changes.append(change)
    follow(t.placer, t.ledger, change)

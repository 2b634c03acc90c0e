"""What one command, or one timer, comes to: facts written one after the other, or taken back."""

from dataclasses import dataclass, field

from domain.changes import CellFreed, CellTaken, Change, NodeAdded, NodeOpened, SlotOpened
from domain.evolve import evolve
from domain.facts import Fact
from domain.fleet_state import Maintenance
from domain.ids import CommandId, child_id
from domain.ledger import Ledger
from domain.ports import Placer
from domain.reservation import Reservation
from domain.timespan import MICROSECONDS, Instant, Timespan


@dataclass(frozen=True, slots=True)
class Written:
    """A fact, the version that its stream has with it, and when it occurred."""

    fact: Fact
    stream_version: int
    occurred_at: Instant


@dataclass(slots=True)
class Transcript:
    """Facts as they are decided. Each is evolved at once, so that the next one sees it.

    `now` is the recorded time of the first of them. A rule that has to refuse after it wrote
    goes back to a mark: the ledger, the placer's index and the list of facts go back with it.
    """

    ledger: Ledger
    placer: Placer
    now: Instant
    command_id: CommandId
    written: list[Written] = field(default_factory=list)

    @property
    def second(self) -> Instant:
        """The whole second that has begun: windows are opened and cut at whole seconds."""
        return Instant(self.now - self.now % MICROSECONDS)

    def new_id(self, name: str) -> str:
        """An id for something that this command brings into being."""
        return child_id(self.command_id, name)

    def write(self, fact: Fact, at: Instant | None = None) -> None:
        """Record a fact that occurred at an instant, or now."""
        occurred_at = self.now if at is None else at
        first = len(self.ledger.changes)
        version = evolve(self.ledger, fact, occurred_at)
        self.written.append(Written(fact, version, occurred_at))
        for change in self.ledger.changes[first:]:
            follow(self.placer, self.ledger, change)

    def mark(self) -> tuple[int, int, int]:
        """The present position, to come back to."""
        return len(self.written), len(self.ledger.changes), self.ledger.undo.mark()

    def back_to(self, mark: tuple[int, int, int]) -> None:
        """Take back every fact since a mark."""
        written, changes, undo = mark
        del self.written[written:]
        take_back(self.placer, self.ledger, changes, undo)


def take_back(placer: Placer, ledger: Ledger, changes: int, undo: int) -> None:
    """Bring the ledger and the placer's index back to where they were."""
    while len(ledger.changes) > changes:
        unfollow(placer, ledger, ledger.changes.pop())
    ledger.undo.back_to(undo)


def follow(placer: Placer, ledger: Ledger, change: Change) -> None:
    """Let the placer's index know what changed."""
    match change:
        case CellTaken(index, _, piece, start, end, tenant_id):
            placer.hold(index, piece, Timespan(start, end), tenant_id)
        case CellFreed(index, _, piece, start, end, tenant_id):
            placer.release(index, piece, Timespan(start, end), tenant_id)
        case NodeAdded(index):
            node = ledger.node_order[index]
            placer.add_node(
                index,
                pool=ledger.pools[node.pool_id].number,
                gpus=node.gpus,
                model=node.model,
                levels=node.levels,
            )
        case NodeOpened(index, is_open):
            placer.set_open(index, is_open=is_open)
        case SlotOpened(index, slot, is_open):
            placer.set_slot_open(index, slot, is_open=is_open)


def unfollow(placer: Placer, ledger: Ledger, change: Change) -> None:
    """Let the placer's index forget what was taken back."""
    match change:
        case CellTaken(index, _, piece, start, end, tenant_id):
            placer.release(index, piece, Timespan(start, end), tenant_id)
        case CellFreed(index, _, piece, start, end, tenant_id):
            placer.hold(index, piece, Timespan(start, end), tenant_id)
        case NodeAdded(index):
            placer.drop_node(index)
        case NodeOpened(index, is_open):
            placer.set_open(index, is_open=not is_open)
        case SlotOpened(index, slot, is_open):
            placer.set_slot_open(index, slot, is_open=not is_open)


def tell_all(placer: Placer, ledger: Ledger) -> None:
    """Let an empty index know everything that a ledger holds, as after a start."""
    for node in ledger.node_order:
        follow(placer, ledger, NodeAdded(node.index))
        follow(placer, ledger, NodeOpened(node.index, is_open=node.is_bookable))
        for slot in node.failed_slots:
            follow(placer, ledger, SlotOpened(node.index, slot, is_open=False))
    holders: list[Reservation | Maintenance] = [
        *ledger.reservations.values(),
        *ledger.maintenances.values(),
    ]
    for holder in holders:
        for holding in holder.holdings:
            node = ledger.nodes[holding.piece.node_id]
            span = Timespan(holding.start, holding.clear)
            placer.hold(node.index, holding.piece, span, holder.owner)

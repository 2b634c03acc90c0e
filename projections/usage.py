"""Usage: every unit-second of every node in exactly one state, by pool, hour and tenant.

Facts arrive in the log's order, hardware reports what happened a little earlier. So each fact
becomes an operation at the instant when it occurred, and operations are carried out in the
order of those instants once no earlier one can come any more: a grace behind recorded time.
What is reported later still counts from there on.
"""

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from domain.facts import hardware, node, pool
from domain.facts import reservation as r
from domain.facts.fact import OfNode, OfReservation
from domain.ids import ReservationId
from domain.record import Recorded
from domain.states import OVER
from domain.timespan import MICROSECONDS, Instant
from domain.units import MILLI_PER_GPU, Piece
from projections.holdings import Held, Holdings
from projections.machines import Gpu, Machine, Run, cut_runs, join_idle
from projections.meter import HOUR_MS, Meter
from projections.table import Table

USED = {"guaranteed": "reserved_used", "borrowed": "borrowed", "overflow": "overflow"}
"""What possession by a class counts as; unknown activity counts as used."""

_CONDITIONS = {"testing": "service", "drained": "down"}
"""What overrules all of a node that is back in a state; nothing in the others."""

RUNS_UNJOINED_MAX = 8

_OVER = frozenset(state.value for state in OVER)


class UsageRow(NamedTuple):
    """What one state came to in one hour; `hour` is its first microsecond since 1970 UTC."""

    pool_id: str
    hour: int
    tenant_id: str
    state: str
    gpu_microseconds: int


class CapacityRow(NamedTuple):
    """What a pool had in one hour, counted from nodes alone."""

    pool_id: str
    hour: int
    gpu_microseconds: int


class Usage:
    """The books of unit-seconds."""

    name = "usage"
    version = 1

    def __init__(self) -> None:
        """Begin empty."""
        self.usage = Table("usage", UsageRow, 4)
        self.capacity = Table("capacity", CapacityRow, 2)
        self.tables: tuple[Table, ...] = (self.usage, self.capacity)
        self.meter = Meter()
        self.fleet = Meter()
        self._holdings = Holdings()
        self._nodes: dict[str, Machine] = {}
        self._marked: dict[ReservationId, list[Piece]] = {}
        self._pending: list[tuple[int, int, int, Callable[[int], None]]] = []
        self._grace = 0
        self._tested: dict[str, bool] = {}
        self._watermark = 0
        """Nothing that happens before this instant is taken in any more."""
        self._number = 0

    def apply(self, recorded: Recorded) -> None:
        """Turn a fact into operations, and carry out those that nothing can precede any more."""
        fact = recorded.fact
        if isinstance(fact, OfReservation):
            self._reservation(recorded, fact)
        elif isinstance(fact, OfNode):
            self._node(recorded, fact)
        elif isinstance(fact, pool.PoolOpened | pool.PoolPolicyChanged):
            self._grace = max(self._grace, fact.policy.ack_grace_seconds * MICROSECONDS)
            self._tested[fact.pool_id] = fact.policy.acceptance
        self._watermark = max(self._watermark, recorded.recorded_at - self._grace)
        self._carry_out(self._watermark)

    def settle(self) -> None:
        """Bring the rows up to the instant behind which nothing more can come."""
        self._fill(self._watermark // 1000)

    def close(self, at: Instant) -> None:
        """Carry out everything up to an instant: the end of a trace, or a reading."""
        self._carry_out(at)
        self._fill(at // 1000)

    def _fill(self, until_ms: int) -> None:
        for meter in (self.meter, self.fleet):
            meter.settle(until_ms)
        final = until_ms - until_ms % HOUR_MS
        for key in sorted(self.meter.touched):
            pool_id, start, name, state = key
            self.usage.put(UsageRow(pool_id, start * 1000, name, state, self.meter.hours[key]))
            if start < final:
                self.usage.is_final((pool_id, start * 1000, name, state))
                del self.meter.hours[key]
        for key in sorted(self.fleet.touched):
            self.capacity.put(CapacityRow(key[0], key[1] * 1000, self.fleet.hours[key]))
            if key[1] < final:
                self.capacity.is_final((key[0], key[1] * 1000))
                del self.fleet.hours[key]
        self.meter.touched.clear()
        self.fleet.touched.clear()

    def _later(self, at: int, seq: int, operation: Callable[[int], None]) -> None:
        self._number += 1
        heappush(self._pending, (max(at, self._watermark), seq, self._number, operation))

    def _carry_out(self, until: int) -> None:
        while self._pending and self._pending[0][0] <= until:
            at, _, _, operation = heappop(self._pending)
            operation(at // 1000)

    def _reservation(self, recorded: Recorded, fact: OfReservation) -> None:
        held = self._holdings.follow(recorded)
        if held is None:
            return
        instants = {int(recorded.occurred_at)}
        if isinstance(fact, r.ReservationHeld):
            instants = {held.start}
        elif isinstance(fact, r.ReservationConfirmed):
            return
        for _, start, end in held.pieces:
            instants |= {edge for edge in (start, end) if edge > recorded.occurred_at}
        for at in instants:
            self._later(at, recorded.seq, lambda ms, held=held: self._sync(held, ms))  # type: ignore[misc]

    def _sync(self, held: Held, ms: int) -> None:
        """Let the runs of the fleet follow what a reservation is entitled to at an instant."""
        at = ms * 1000
        wanted: list[Piece] = []
        if held.state not in {"confirmed", "at-risk"}:
            wanted = [piece for piece, start, end in held.pieces if start <= at < end]
        had = self._marked.get(held.reservation_id, [])
        if had != wanted:
            for piece in had:
                if piece not in wanted:
                    self._leave(held, piece, ms)
        enters_again = held.state in {"held", "active"}
        for piece in wanted:
            if enters_again or piece not in had:
                self._enter(held, piece, ms)
        if wanted:
            self._marked[held.reservation_id] = wanted
        else:
            self._marked.pop(held.reservation_id, None)
        if held.state in _OVER and all(end <= at for _, _, end in held.pieces):
            self._holdings.by_id.pop(held.reservation_id, None)

    def _enter(self, held: Held, piece: Piece, ms: int) -> None:
        """A run is its holder's: held, waiting for its hand-over, or possessed."""
        possessed = self._nodes[piece.node_id].possessed.get(held.reservation_id, ())
        if held.state == "held":
            state = "held"
        elif any(piece.overlaps(other) for other in possessed):
            state = USED[held.klass]
        else:
            state = "service"
        tenant = "" if state == "service" else held.tenant_id
        self._turn(piece, self._runs(piece), ms, held.reservation_id, tenant, state)

    def _leave(self, held: Held, piece: Piece, ms: int) -> None:
        """A run is no longer its holder's: it is being freed, or free at once."""
        possessed = self._nodes[piece.node_id].possessed.get(held.reservation_id, ())
        freeing = any(piece.overlaps(other) for other in possessed)
        mine = [run for run in self._runs(piece) if run.holder == held.reservation_id]
        if freeing:
            self._turn(piece, mine, ms, held.reservation_id, "", "service")
        else:
            self._turn(piece, mine, ms, None, "", "idle")

    def _applied(self, fact: hardware.UnitsApplied, ms: int) -> None:
        where = self._nodes[fact.node_id]
        where.possessed[fact.reservation_id] = fact.pieces
        held = self._holdings.by_id.get(fact.reservation_id)
        for piece in fact.pieces:
            mine = self._runs_of(piece, fact.reservation_id, "service")
            if held:
                used = USED[held.klass]
                self._turn(piece, mine, ms, fact.reservation_id, held.tenant_id, used)

    def _freed(self, fact: hardware.UnitsFreed | hardware.ReleasePresumed, ms: int) -> None:
        self._nodes[fact.node_id].possessed.pop(fact.reservation_id, None)
        for piece in fact.pieces:
            mine = self._runs_of(piece, fact.reservation_id, "service")
            self._turn(piece, mine, ms, None, "", "idle")

    def _observed(self, fact: hardware.ActivityObserved, ms: int, *, begins: bool) -> None:
        """Idle in its holder's hands for a while, if it was seen so."""
        before, after = "reserved_used", "reserved_unused"
        if not begins:
            before, after = after, before
        for piece in fact.pieces:
            mine = self._runs_of(piece, fact.reservation_id, before)
            if mine:
                self._turn(piece, mine, ms, fact.reservation_id, mine[0].tenant, after)

    def _node(self, recorded: Recorded, fact: OfNode) -> None:
        at, seq = recorded.occurred_at, recorded.seq
        match fact:
            case node.NodeJoined():
                # Windows begin at whole seconds, so a node counts from the second it joined in.
                second = at - at % MICROSECONDS
                self._later(second, seq, lambda ms: self._joined(fact, ms))
            case hardware.UnitsApplied():
                self._later(at, seq, lambda ms: self._applied(fact, ms))
            case hardware.UnitsFreed() | hardware.ReleasePresumed():
                self._later(at, seq, lambda ms: self._freed(fact, ms))
            case hardware.ActivityObserved(start=start, end=end, occupied=False):
                self._later(start, seq, lambda ms: self._observed(fact, ms, begins=True))
                self._later(end, seq, lambda ms: self._observed(fact, ms, begins=False))
            case node.NodeRebooting(lost_at=lost_at):
                self._later(lost_at, seq, lambda ms: self._lose(fact, ms))
            case node.NodeRecovered(work_lost=True, lost_at=lost_at):
                self._later(
                    at if lost_at is None else lost_at, seq, lambda ms: self._lose(fact, ms)
                )
                self._later(at, seq, lambda ms: self._condition(fact, ms))
            case node.UnitsFailed(slots=slots) | node.UnitsRecovered(slots=slots):
                failed = isinstance(fact, node.UnitsFailed)
                self._later(at, seq, lambda ms: self._fail(fact.node_id, slots, ms, failed=failed))
            case _:
                self._later(at, seq, lambda ms: self._condition(fact, ms))

    def _joined(self, fact: node.NodeJoined, ms: int) -> None:
        runs = [[Run(slot * 1000, slot * 1000 + 1000)] for slot in range(fact.gpus)]
        joined = Machine([Gpu(fact.pool_id, fact.model, list(of_slot)) for of_slot in runs])
        joined.condition = "service" if self._tested[fact.pool_id] else ""
        self._nodes[fact.node_id] = joined
        width = fact.gpus * MILLI_PER_GPU
        self.meter.change((fact.pool_id, "", joined.condition or "idle"), ms, width)
        self.fleet.change((fact.pool_id, "", ""), ms, width)

    def _condition(self, fact: OfNode, ms: int) -> None:
        """What a fact says of the whole node."""
        where = self._nodes[fact.node_id]
        condition = where.condition
        match fact:
            case node.NodeFailed() | node.NodeDrained() | node.AcceptanceFailed():
                condition = "down"
            case node.MaintenanceStarted():
                condition = "maintenance"
            case node.AcceptanceStarted():
                condition = "service"
            case node.NodeRecovered(state=state):
                condition = _CONDITIONS.get(state, "")
            case node.MaintenanceEnded():
                condition = "service" if self._tested[fact.pool_id] else ""
            case node.AcceptancePassed() | node.NodeDrainCancelled():
                condition = ""
            case node.NodeRetired():
                self._retire(fact, ms)
                return
            case _:
                return
        self._overrule(where, ms, condition)

    def _lose(self, fact: OfNode, ms: int) -> None:
        """A node is down from when it lost what it had: it is handed over anew before it counts."""
        where = self._nodes[fact.node_id]
        self._overrule(where, ms, "down")
        where.possessed.clear()
        for gpu in where.gpus:
            for run in gpu.runs:
                if run.holder is None or run.state == "held":
                    continue
                piece = Piece(fact.node_id, run.first, run.end - run.first)
                kept = any(piece.overlaps(had) for had in self._marked.get(run.holder, ()))
                holder = run.holder if kept else None
                self._turn(piece, (run,), ms, holder, "", "service" if kept else "idle")

    def _overrule(self, where: Machine, ms: int, condition: str) -> None:
        whole = [(gpu, run) for gpu in where.gpus for run in gpu.runs]
        self._count(where, whole, ms, -1)
        where.condition = condition
        self._count(where, whole, ms, 1)

    def _retire(self, fact: OfNode, ms: int) -> None:
        gone = self._nodes.pop(fact.node_id)
        self._count(gone, [(gpu, run) for gpu in gone.gpus for run in gpu.runs], ms, -1)
        self.fleet.change((fact.pool_id, "", ""), ms, -len(gone.gpus) * MILLI_PER_GPU)

    def _fail(self, node_id: str, slots: tuple[int, ...], ms: int, *, failed: bool) -> None:
        where = self._nodes[node_id]
        for slot in slots:
            gpu = where.gpus[slot]
            whole = [(gpu, run) for run in gpu.runs]
            self._count(where, whole, ms, -1)
            gpu.is_failed = failed
            self._count(where, whole, ms, 1)

    def _count(self, where: Machine, runs: Iterable[tuple[Gpu, Run]], ms: int, sign: int) -> None:
        """Let runs enter the accounts that they belong to, or leave them."""
        widths: dict[tuple[str, str, str], int] = {}
        for gpu, run in runs:
            state, tenant = run.state, run.tenant
            if gpu.is_failed or where.condition:
                state, tenant = ("down" if gpu.is_failed else where.condition), ""
            account = (gpu.pool_id, tenant, state)
            widths[account] = widths.get(account, 0) + run.end - run.first
        for account, width in widths.items():
            self.meter.change(account, ms, sign * width)

    def _turn(
        self,
        piece: Piece,
        runs: Iterable[Run],
        ms: int,
        holder: ReservationId | None,
        tenant: str,
        state: str,
    ) -> None:
        """Runs of a piece change hands, or what they count as."""
        where = self._nodes[piece.node_id]
        turning = [
            (where.gpus[run.first // MILLI_PER_GPU], run)
            for run in runs
            if run.state != state or run.holder != holder or run.tenant != tenant
        ]
        self._count(where, turning, ms, -1)
        for _, run in turning:
            run.holder, run.tenant, run.state = holder, tenant, state
        self._count(where, turning, ms, 1)

    def _runs_of(self, piece: Piece, holder: ReservationId, state: str) -> list[Run]:
        """The runs of a piece that are in a holder's hands and in one state."""
        return [r for r in self._runs(piece) if r.holder == holder and r.state == state]

    def _runs(self, piece: Piece) -> list[Run]:
        """The runs that make up a piece exactly, cut where they must be."""
        where = self._nodes.get(piece.node_id)
        if where is None:
            return []
        found: list[Run] = []
        for slot in piece.slots:
            gpu = where.gpus[slot]
            if piece.width_milli >= MILLI_PER_GPU and len(gpu.runs) == 1:
                # Whole GPUs, as nearly always: nothing is to be cut. A piece wider than one has only such.
                found.append(gpu.runs[0])
                continue
            if len(gpu.runs) > RUNS_UNJOINED_MAX:
                join_idle(gpu)
            first = max(piece.first_milli, slot * MILLI_PER_GPU)
            end = min(piece.end_milli, (slot + 1) * MILLI_PER_GPU)
            if len(gpu.runs) > 1 or (first, end) != (gpu.runs[0].first, gpu.runs[0].end):
                cut_runs(gpu, first)
                cut_runs(gpu, end)
            found += [run for run in gpu.runs if first <= run.first and run.end <= end]
        return found

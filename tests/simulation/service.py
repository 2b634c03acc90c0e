"""One seeded run of the whole service in memory, with crashes, redeliveries and jumps of time."""

from random import Random

from connectors.memory.journal import MemoryJournal, MemoryStore
from connectors.planner.planner import PRINCIPAL, proposals
from connectors.postgres.recorded import recorded
from connectors.reconciler.loop import submissions_of
from connectors.reconciler.reconciler import Reconciler
from connectors.sequencer.engine import Sequencer
from connectors.sequencer.opening import open_sequencer, restore
from connectors.simulated.fleet import Delays, SimulatedFleet
from connectors.simulated.provisioner import Pace, SimulatedProvisioner
from domain import commands as c
from domain.commands import Command
from domain.commands.node import Health
from domain.commands.report import ProposePlan
from domain.environment import Environment, Orchestrator
from domain.ids import MaintenanceId, NodeId, TenantId
from domain.journal import Cell, Snapshot
from domain.principal import Principal
from domain.record import Recorded
from domain.sizes import ReservationClass, Size
from domain.snapshot import PlanAnswer, PlanProblem
from domain.states import OVER
from domain.submission import TICK, Outcome, OutcomeKind, Submission
from domain.timespan import MICROSECONDS, Instant
from projections.catalogue import all_projections
from projections.projection import fold, state_hash
from projections.usage import Usage
from schemas.image import IMAGE_FORMAT, hash_of, image_of, pack
from schemas.registry import registry
from solvers.checker import answer_faults
from solvers.repacking import repack
from tests import builders as b

NODES = 5
TENANTS = ("a", "b", "c")
STEPS = 60
MINUTE = 60 * MICROSECONDS
CRASH_CHANCE = 0.04


def checked(problem: PlanProblem) -> PlanAnswer:
    """A plan of the real solver, without a process of its own; nothing broken is ever offered."""
    answer = repack(problem)
    assert not answer_faults(problem, answer), answer
    return answer


class Crash(Exception):
    """The machine stops at a failpoint."""


class Simulation:
    """The promises are checked after every step; a broken one raises."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.store = MemoryStore()
        self.now = b.T0
        self.armed = False
        self.keys = 0
        self.acknowledged: dict[tuple[str, str], Outcome] = {}
        self.sent: list[Submission] = []
        self.seen = 0
        self.late: list[ProposePlan] = []
        self.plans = 0
        self.sequencer = self.open()
        delays = Delays(self.random.choice((0, 800)), self.random.choice((0, 1200)), 500)
        self.fleet = SimulatedFleet(seed=seed, delays=delays)
        pace = Pace(self.random.choice((0, 3000)), 500, self.random.choice((0, 1500)))
        self.reconciler = Reconciler(self.fleet, provisioner=SimulatedProvisioner(pace))
        self.set_up()

    def open(self) -> Sequencer:
        """Another writer, which may itself crash on its way in."""
        while True:
            journal = MemoryJournal(self.store, self.failpoint)
            try:
                return open_sequencer(journal, registry(), holder="sim", secret=b"s", clock=None)
            except Crash:
                continue

    def failpoint(self, name: str) -> None:
        if self.armed and self.random.random() < CRASH_CHANCE:
            raise Crash(name)

    def set_up(self) -> None:
        term = {"term_seconds": 7200, "term_notice_seconds": 1800, "term_retry_seconds": 600}
        gap = self.random.choice((0, 0, 300))
        grace = self.random.choice((0, 600))
        breaker = self.random.choice((100, 100, 40))
        braked = {"grace_seconds": grace, "breaker_percent": breaker}
        self.send([b.open_pool(gap_seconds=gap, **braked, **term)])
        self.send([b.join(f"n{n}", rack=f"r{n % 2}") for n in range(NODES)])
        for name in TENANTS:
            self.send(
                [b.register(name), b.grant(name, gpus=self.random.choice((8, 24, 40)), borrow=16)]
            )
        self.armed = True

    def submission(self, command: Command, who: Principal) -> Submission:
        self.keys += 1
        contract, body = registry().encode(command)
        return Submission(who, f"key-{self.keys}", contract.type, body, self.now)

    def send(self, commands: list[Command], who: Principal = b.OPERATOR) -> None:
        self.deliver([self.submission(command, who) for command in commands])

    def deliver(self, batch: list[Submission]) -> None:
        """Submit until it is answered: a client that saw no answer asks again, by key."""
        for _ in range(50):
            try:
                outcomes = self.sequencer.submit(batch)
                break
            except Crash:
                self.sequencer = self.open()
        else:
            raise AssertionError("never answered")
        for submission, outcome in zip(batch, outcomes, strict=True):
            assert outcome.kind is not OutcomeKind.QUARANTINED, outcome
            self.remember(submission, outcome)

    def remember(self, submission: Submission, outcome: Outcome) -> None:
        if submission.type == TICK or submission.key.startswith("reconciler/"):
            return
        key = (submission.principal.scope, submission.key)
        known = self.acknowledged.get(key)
        if known is not None:
            assert (known.seq_from, known.seq_to) == (outcome.seq_from, outcome.seq_to), key
        self.acknowledged[key] = outcome
        self.sent.append(submission)

    def step(self) -> None:
        chance = self.random.random()
        if chance < 0.5:
            self.send([self.a_request() for _ in range(self.random.randint(1, 6))])
        elif chance < 0.62:
            self.alter()
        elif chance < 0.72:
            self.trouble()
        elif chance < 0.77 and self.sent:
            again = self.random.sample(self.sent, min(4, len(self.sent)))
            self.deliver([Submission(s.principal, s.key, s.type, s.body, self.now) for s in again])
        elif chance < 0.80:
            self.keep_snapshot()
        elif chance < 0.86:
            self.plan()
        else:
            self.pass_time()
        self.hear()
        self.check()

    def a_request(self) -> Command:
        size = self.random.choice(
            (
                Size(gpus=1),
                Size(gpus=2),
                Size(gpus=8),
                Size(nodes=2),
                Size(gpus=12),
                Size(share_milli=self.random.choice((100, 250, 600))),
            )
        )
        start = self.random.choice((None, *range(12)))
        first = None if start is None else Instant(self.second() + start * 10 * MINUTE)
        is_open_ended = self.random.random() < 0.08
        return c.RequestReservation(
            TenantId(self.random.choice(TENANTS)),
            b.POOL,
            size,
            first,
            duration_seconds=None if is_open_ended else self.random.choice((1, 600, 3600, 7200)),
            klass=self.random.choice((ReservationClass.GUARANTEED, ReservationClass.BORROWED)),
            hold_seconds=self.random.choice((None, None, None, 300)),
            offers_max=self.random.choice((0, 2)),
            until_released=is_open_ended,
            environment=None if size.share_milli else self.an_environment(),
        )

    def an_environment(self) -> Environment | None:
        if self.random.random() < 0.8:
            return None
        return Environment(self.random.choice(list(Orchestrator)), 100, "kept")

    def second(self) -> int:
        return self.now - self.now % MICROSECONDS

    def alter(self) -> None:
        live = [r for r in self.sequencer.ledger.reservations.values() if r.state not in OVER]
        if not live:
            return
        found = self.random.choice(sorted(live, key=lambda r: r.id))
        command = self.random.choice(
            (
                c.ConfirmHold(found.id),
                c.CancelReservation(found.id),
                c.GiveBack(found.id),
                c.StopRenewing(found.id),
                c.ExtendReservation(found.id, Instant(found.end + 30 * MINUTE)),
                c.ShrinkReservation(found.id, Size(gpus=1)),
                c.Preempt(b.POOL, (found.id,), "test"),
            )
        )
        self.send([command])

    def trouble(self) -> None:
        node = NodeId(f"n{self.random.randrange(NODES)}")
        health = self.random.choice((*Health, Health.RECOVERED))
        slots = (self.random.randrange(8),) if self.random.random() < 0.4 else ()
        begin = Instant(self.second() + 10 * MINUTE)
        plans = sorted(self.sequencer.ledger.maintenances)
        command: Command = self.random.choice(
            (
                c.ReportHealth(b.POOL, health, "test", node, slots),
                c.ReportHealth(b.POOL, Health.RECOVERED, "test", node),
                c.ReportHealth(b.POOL, health, "test", level="rack", group="r0"),
                c.CordonNode(node),
                c.DrainNode(node),
                c.UncordonNode(node),
                c.PlanMaintenance(b.POOL, begin, Instant(begin + 30 * MINUTE), node),
                c.CancelMaintenance(plans[0] if plans else MaintenanceId("none")),
                c.Freeze((self.random.choice(("repair", "preempt", "bookings")),), "test"),
                c.Thaw(("repair", "preempt", "bookings", "apply"), "test"),
            )
        )
        self.send([command])

    def pass_time(self) -> None:
        """Mostly a little, sometimes a leap."""
        minutes = self.random.choice((0, 1, 5, 10, 10, 60, 1440))
        self.now = Instant(self.now + minutes * MINUTE + self.random.randrange(MICROSECONDS))
        self.deliver([Submission(b.OPERATOR, "tick", TICK, b"", self.now)])

    def keep_snapshot(self) -> None:
        ledger, seq = restore(MemoryJournal(self.store), registry(), 0)
        image = image_of(ledger)
        MemoryJournal(self.store).save_snapshot(
            Snapshot(seq, pack(image), hash_of(image)), IMAGE_FORMAT
        )

    def plan(self) -> None:
        """The planner sees the log as it is; its proposals come at once, late, or twice."""
        ledger, seq = restore(MemoryJournal(self.store), registry(), 0)
        fresh = proposals(ledger, seq, self.now, checked)
        late, self.late = self.late, []
        if self.random.random() < 0.3:
            self.late = fresh
            fresh = []
        if fresh + late:
            self.send([*fresh, *late], PRINCIPAL)
            self.plans += len(fresh)

    def new_facts(self) -> list[Recorded]:
        facts = [recorded(e, registry()) for e in self.store.events[self.seen :]]
        self.seen += len(facts)
        return facts

    def hear(self) -> None:
        """Hardware hears what was recorded; its reports may be delivered twice."""
        reports = submissions_of(
            self.reconciler.step(self.new_facts(), self.now), registry(), self.now
        )
        if reports:
            self.deliver(reports)
            if self.random.random() < 0.2:
                self.deliver(reports)

    def check(self) -> None:
        """What must hold after every step."""
        ledger = self.sequencer.ledger
        for node in ledger.node_order:
            held = sorted(node.lanes.held(0, 8000, Instant(0), Instant(1 << 62)))
            for at, one in enumerate(held):
                for other in held[at + 1 :]:
                    apart = one[1] <= other[0] or other[1] <= one[0]
                    assert apart or one[3] <= other[2] or other[3] <= one[2], (one, other)
        for found in ledger.reservations.values():
            if found.state not in OVER:
                assert found.held_milli(max(self.now, found.start)) <= found.milli

    def finish(self) -> None:
        """What must hold at the end: replay, cells, claims, read models, books."""
        self.armed = False
        self.now = Instant(self.now + 14 * 24 * 60 * MINUTE)
        self.deliver([Submission(b.OPERATOR, "tick", TICK, b"", self.now)])
        self.hear()
        replayed, seq = restore(MemoryJournal(self.store), registry(), 0)
        assert seq == self.store.head.seq
        assert image_of(replayed) == image_of(self.sequencer.ledger)
        self.store.snapshots.clear()
        bare, _ = restore(MemoryJournal(self.store), registry(), 0)
        assert image_of(bare) == image_of(replayed), "a snapshot is only a cache"
        self.check_cells()
        for (scope, key), outcome in self.acknowledged.items():
            if outcome.seq_from:
                claim = self.store.claims[scope, key]
                assert (claim.seq_from, claim.seq_to) == (outcome.seq_from, outcome.seq_to)
        self.check_books()

    def check_cells(self) -> None:
        cells: list[Cell] = [cell for of_node in self.store.cells.values() for cell in of_node]
        cells.sort(key=lambda cell: (cell.first_milli, cell.start))
        assert len({(x.first_milli, x.end_milli, x.start, x.end) for x in cells}) == len(cells)

    def check_books(self) -> None:
        log = [recorded(e, registry()) for e in self.store.events]
        hashes = []
        for _ in range(2):
            projections = all_projections()
            for projection in projections:
                fold(projection, log)
            hashes.append([state_hash(projection) for projection in projections])
        assert hashes[0] == hashes[1]
        usage = Usage()
        for entry in log:
            usage.apply(entry)
        usage.close(self.now)
        by_hour: dict[tuple[str, int], int] = {}
        for row in usage.usage:
            assert row[4] >= 0
            by_hour[row[0], row[1]] = by_hour.get((row[0], row[1]), 0) + row[4]
        assert by_hour == {(row[0], row[1]): row[2] for row in usage.capacity}


def run(seed: int) -> int:
    """One run; how many events it came to."""
    simulation = Simulation(seed)
    for _ in range(STEPS):
        simulation.step()
    simulation.finish()
    return simulation.store.head.seq

"""Environments on a reservation's units: what is told of them, in its order, and what is freed when."""

from typing import Any

from connectors.postgres.recorded import recorded
from connectors.reconciler.loop import submissions_of
from connectors.reconciler.reconciler import Reconciler
from connectors.simulated.fleet import SimulatedFleet
from connectors.simulated.provisioner import Pace, SimulatedProvisioner
from domain import commands as c
from domain.commands.node import Health
from domain.environment import (
    ENVIRONMENT_CHECKS,
    Environment,
    EnvironmentReport,
    EnvironmentStage,
    Orchestrator,
)
from domain.facts.environment import EnvironmentProvisioned, EnvironmentWiped
from domain.facts.hardware import ReportStamp
from domain.facts.node import CheckReport
from domain.ids import NodeId
from domain.reservation import Reservation
from domain.timespan import Instant
from schemas.image import image_of, ledger_from
from schemas.registry import registry
from tests import builders as b
from tests.world import World

KUBERNETES = Environment(Orchestrator.KUBERNETES, 100, "weights")
N1 = NodeId("n1")
PASSED = tuple(CheckReport(name, passed=True, detail="") for name in ENVIRONMENT_CHECKS)
FAILED = (CheckReport("isolation", passed=False, detail="reached from outside"),)
DIGEST = {"digest": "00"}


class Told:
    """A world, and a provisioner that is this test."""

    def __init__(self) -> None:
        self.world = World()
        self.booked = self.world.booked(b.book(start=0, environment=KUBERNETES))
        self.number = 0

    def report(self, report: str, **more: Any) -> c.ReportEnvironment:
        self.number += 1
        stamp = ReportStamp("test", "1", self.number)
        kind = EnvironmentReport(report)
        return c.ReportEnvironment(self.booked.id, kind, self.world.now, stamp, **more)

    def accept(self, report: str, **more: Any) -> None:
        self.world.accept(self.report(report, **more), principal=b.SERVICE)

    def refused(self, report: str, **more: Any) -> str:
        return self.world.refused(self.report(report, **more), principal=b.SERVICE)

    @property
    def stage(self) -> EnvironmentStage:
        environment = self.world.reservation(self.booked).environment
        assert environment is not None
        return environment.stage


def test_it_goes_from_requested_to_ready_to_torn_down() -> None:
    told = Told()
    stages = [told.stage.value]
    told.accept("provisioned", nodes=(N1,))
    told.accept("checked", checks=PASSED)
    stages.append(told.stage.value)
    told.accept("torn-down")
    stages.append(told.stage.value)
    assert stages == ["requested", "ready", "torn-down"]
    told.accept("wiped", nodes=(N1,), evidence=DIGEST)
    told.world.check()
    image = image_of(told.world.sequencer.ledger)
    assert image_of(ledger_from(image)) == image


def test_one_check_that_fails_keeps_it_back_and_is_told_to_its_tenant() -> None:
    told = Told()
    told.accept("provisioned", nodes=(N1,))
    told.accept("checked", checks=FAILED)
    assert told.stage is EnvironmentStage.FAILED
    assert told.world.types()[-2:] == ["EnvironmentFailed", "NoticeIssued"]


def test_what_was_not_checked_is_not_ready() -> None:
    told = Told()
    told.accept("provisioned", nodes=(N1,))
    assert told.refused("checked", checks=PASSED[:2]) == "malformed"
    assert told.stage is EnvironmentStage.PROVISIONED


def test_reports_out_of_their_order_are_refused() -> None:
    told = Told()
    assert told.refused("checked", checks=PASSED) == "wrong-state"
    told.accept("torn-down")
    assert told.refused("provisioned", nodes=(N1,)) == "wrong-state"
    assert told.refused("torn-down") == "wrong-state"


def test_a_wipe_without_evidence_or_without_its_one_node_is_none() -> None:
    told = Told()
    assert told.refused("wiped", nodes=(N1,)) == "malformed"
    assert told.refused("wiped", evidence=DIGEST) == "malformed"
    assert told.refused("wiped", nodes=(NodeId("n9"),), evidence=DIGEST) == "not-found"


def test_a_reservation_that_asked_for_none_has_none() -> None:
    told = Told()
    told.booked = told.world.booked(b.book(start=3, end=4))
    assert told.refused("provisioned", nodes=(N1,)) == "wrong-state"


def test_a_report_that_was_heard_before_changes_nothing() -> None:
    told = Told()
    again = told.report("provisioned", nodes=(N1,))
    for _ in range(2):
        told.world.send(again, principal=b.SERVICE)
    assert told.world.types().count("EnvironmentProvisioned") == 1


def test_only_a_service_tells_of_it() -> None:
    told = Told()
    report = told.report("provisioned", nodes=(N1,))
    assert told.world.refused(report, principal=b.tenant("a")) == "forbidden"


def test_a_pool_sets_up_what_it_says_it_does() -> None:
    world = World(orchestrators=("slurm",))
    assert world.refused(b.book(environment=KUBERNETES)) == "not-enforceable"
    assert World(0).refused(b.open_pool(orchestrators=("swarm",))) == "malformed"


def test_storage_is_named_and_sized() -> None:
    world = World()
    for wrong in (
        Environment(Orchestrator.NONE, -1),
        Environment(Orchestrator.NONE, 0, "my volume"),
    ):
        assert world.refused(b.book(environment=wrong)) == "malformed"


class Running:
    """A world with hardware that takes its time."""

    def __init__(self) -> None:
        self.world = World(3)
        self.seen = 0
        pace = Pace(provision_ms=60_000, tear_down_ms=5_000, wipe_ms=20_000)
        self.restart(pace)

    def restart(self, pace: Pace) -> None:
        """Another reconciler learns what there is; it has a provisioner that knows nothing."""
        fleet = SimulatedFleet(session=str(self.seen))
        self.reconciler = Reconciler(fleet, provisioner=SimulatedProvisioner(pace))
        events = self.world.store.events[: self.seen]
        self.reconciler.learn(recorded(event, registry()) for event in events)
        fleet.adopt(self.reconciler.given())

    def until(self, at: Instant) -> None:
        """Time goes on by half a minute at a time, and hardware is heard."""
        while self.world.now < at:
            self.world.advance(Instant(min(at, self.world.now + 30_000_000)))
            for _ in range(4):
                events = self.world.store.events[self.seen :]
                self.seen += len(events)
                facts = [recorded(event, registry()) for event in events]
                reports = self.reconciler.step(facts, self.world.now)
                self.world.sequencer.submit(submissions_of(reports, registry(), self.world.now))

    def of(self, kind: type[Any]) -> list[Any]:
        facts = [recorded(event, registry()).fact for event in self.world.store.events]
        return [fact for fact in facts if isinstance(fact, kind)]

    def stage(self, which: Reservation) -> str:
        environment = self.world.reservation(which).environment
        assert environment is not None
        return environment.stage.value


def test_a_node_that_takes_the_place_of_a_failed_one_joins_and_the_left_one_is_wiped() -> None:
    running = Running()
    booked = running.world.booked(b.book(nodes=2, start=0, environment=KUBERNETES))
    running.until(b.at(0.1))
    assert running.stage(booked) == "ready"
    running.world.accept(c.ReportHealth(b.POOL, Health.FAILED, "test", N1))
    running.until(b.at(0.2))
    assert [each.nodes for each in running.of(EnvironmentProvisioned)] == [
        ("n1", "n2"),
        ("n2", "n3"),
    ]
    assert [each.node_id for each in running.of(EnvironmentWiped)] == ["n1"]
    assert running.stage(booked) == "ready"
    running.world.check()


def test_one_that_lost_all_its_units_stands_again_when_it_gets_some() -> None:
    running = Running()
    booked = running.world.booked(b.book(nodes=3, start=0, end=2, environment=KUBERNETES))
    running.until(b.at(0.1))
    for name in ("n1", "n2", "n3"):
        running.world.accept(c.ReportHealth(b.POOL, Health.FAILED, "test", NodeId(name)))
    running.until(b.at(0.2))
    assert "EnvironmentTornDown" not in running.world.types()
    for name in ("n1", "n2", "n3"):
        running.world.accept(c.ReportHealth(b.POOL, Health.RECOVERED, "test", NodeId(name)))
    running.until(b.at(0.4))
    assert running.stage(booked) == "ready"
    assert running.of(EnvironmentProvisioned)[-1].nodes == ("n1", "n2", "n3")
    running.until(b.at(2.1))
    assert running.stage(booked) == "torn-down"
    running.world.check()


def test_nobody_gets_a_node_before_it_is_wiped_even_over_a_restart() -> None:
    running = Running()
    running.world.booked(b.book(nodes=3, start=0, end=1, environment=KUBERNETES))
    following = running.world.booked(b.book("b", nodes=3, start=1, end=2))
    running.until(b.at(1, 10))
    assert not running.of(EnvironmentWiped)
    assert following.id not in running.world.sequencer.ledger.possessions
    running.restart(Pace(wipe_ms=20_000))
    running.until(b.at(1.2))
    assert sorted(each.node_id for each in running.of(EnvironmentWiped)) == ["n1", "n2", "n3"]
    assert following.id in running.world.sequencer.ledger.possessions
    types = running.world.types()
    assert max(at for at, kind in enumerate(types) if kind == "EnvironmentWiped") < max(
        at for at, kind in enumerate(types) if kind == "UnitsApplied"
    )
    running.world.check()

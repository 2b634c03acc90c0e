"""What every fleet promises; the simulated one stands for all until real ones join."""

import pytest

from connectors.postgres.recorded import recorded
from connectors.reconciler.reconciler import Reconciler
from connectors.simulated.fleet import Delays, Fault, SimulatedFleet, faults_by_chance
from domain.commands.node import Health, ReportHealth
from domain.commands.report import ReportApplied, ReportFreed
from domain.commands.reservation import GiveBack
from domain.fleet import Applied, DoubleHold, Freed, HealthSeen
from domain.ids import NodeId, ReservationId
from domain.timespan import Instant
from domain.units import Piece
from schemas.registry import registry
from tests import builders as b
from tests.world import World

N1 = NodeId("n1")
ONE, TWO = ReservationId("one"), ReservationId("two")
WHOLE = (Piece(N1, 0, 8000),)
HALF = (Piece(N1, 0, 4000),)


@pytest.fixture
def fleet() -> SimulatedFleet:
    return SimulatedFleet(delays=Delays(apply_ms=1_000, free_ms=7_000))


def test_units_are_handed_over_after_a_while(fleet: SimulatedFleet) -> None:
    fleet.apply(N1, ONE, WHOLE, b.at(1))
    assert fleet.observe(b.at(1)) == []
    assert fleet.observe(b.at(1, seconds=1)) == [Applied(N1, ONE, WHOLE, b.at(1, seconds=1))]
    assert fleet.observe(b.at(2)) == []
    assert fleet.held() == {(N1, ONE): WHOLE}


def test_the_next_holder_gets_units_only_once_the_former_one_has_left(
    fleet: SimulatedFleet,
) -> None:
    fleet.apply(N1, ONE, WHOLE, b.at(0))
    fleet.free(N1, ONE, b.at(1))
    fleet.apply(N1, TWO, HALF, b.at(1))
    freed, applied = (o for o in fleet.observe(b.at(2)) if o.occurred_at > b.at(1))
    assert freed == Freed(N1, ONE, WHOLE, b.at(1, seconds=7))
    assert applied == Applied(N1, TWO, HALF, b.at(1, seconds=8))


def test_units_that_nobody_is_leaving_are_refused_to_a_second_holder(
    fleet: SimulatedFleet,
) -> None:
    fleet.apply(N1, ONE, WHOLE, b.at(0))
    with pytest.raises(DoubleHold):
        fleet.apply(N1, TWO, HALF, b.at(1))


def test_an_intent_that_is_repeated_is_told_again_and_changes_nothing(
    fleet: SimulatedFleet,
) -> None:
    fleet.apply(N1, ONE, WHOLE, b.at(0))
    fleet.apply(N1, ONE, WHOLE, b.at(1))
    assert len(fleet.observe(b.at(2))) == 2
    fleet.free(N1, ONE, b.at(3))
    fleet.free(N1, ONE, b.at(3))
    assert len(fleet.observe(b.at(4))) == 1
    assert fleet.held() == {}


def test_faults_come_by_schedule_and_by_chance_from_a_seed() -> None:
    fault = Fault(b.at(1), N1, Health.FAILED, "xid79", (3,))
    seen = SimulatedFleet(faults=(fault,)).observe(b.at(1))
    assert seen == [HealthSeen(N1, (3,), Health.FAILED, "xid79", "", b.at(1))]
    drawn = [faults_by_chance([N1], 7, b.at(0), b.at(5_000), 300) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert [f.health for f in drawn[0][:2]] == [Health.FAILED, Health.RECOVERED]


def test_a_failed_hand_over_is_told_and_tried_again() -> None:
    world = World(nodes=1)
    booked = world.booked(b.book("a", start=0, end=4))
    facts = [recorded(e, registry()) for e in world.store.events]
    fleet = SimulatedFleet(apply_failure=1.0)
    reconciler = Reconciler(fleet)
    first = reconciler.step(facts, b.at(1))
    assert [type(c) for c in first] == [ReportApplied]
    assert isinstance(first[0], ReportApplied)
    assert first[0].failure == "apply-failed"
    fleet.apply_failure = 0.0
    second = reconciler.step([], b.at(1, seconds=1))
    assert isinstance(second[0], ReportApplied)
    assert (second[0].reservation_id, second[0].failure) == (booked.id, "")


def test_a_reconciler_that_starts_anew_touches_nothing_that_is_right() -> None:
    world = World(nodes=1)
    booked = world.booked(b.book("a", start=0, end=4))
    fleet = SimulatedFleet()
    reconciler = Reconciler(fleet)
    log = [recorded(e, registry()) for e in world.store.events]
    for report in reconciler.step(log, b.at(1)):
        world.accept(report, principal=b.SERVICE, at=b.at(1))
    again = SimulatedFleet(session="2")
    fresh = Reconciler(again)
    fresh.learn(recorded(e, registry()) for e in world.store.events)
    again.adopt(fresh.given())
    assert again.held() == fleet.held()
    assert fresh.step([], b.at(2)) == []
    world.accept(GiveBack(booked.id), at=b.at(3))
    tail = [recorded(e, registry()) for e in world.store.events[len(log) :]]
    assert [type(c) for c in fresh.step(tail[-2:], b.at(3))] == [ReportFreed]


def test_health_is_reported_with_a_stamp_of_its_own() -> None:
    world = World(nodes=1)
    faults = (Fault(b.at(1), N1, Health.FAILED), Fault(b.at(2), N1, Health.RECOVERED))
    reconciler = Reconciler(SimulatedFleet(faults=faults))
    log = [recorded(e, registry()) for e in world.store.events]
    reports = reconciler.step(log, Instant(b.at(3)))
    assert all(isinstance(report, ReportHealth) for report in reports)
    for report in (*reports, reports[0]):
        world.send(report, principal=b.SERVICE, at=b.at(3))
    assert world.types()[-3:] == ["NodeFailed", "NodeRecovered", "CommandHadNoEffect"]

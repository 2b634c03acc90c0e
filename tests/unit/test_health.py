"""What monitors tell: boots and blips, graces by cause, and what is not believed."""

from itertools import permutations
from typing import Any

import pytest

from connectors.postgres.recorded import recorded
from domain import commands as c
from domain.commands import Command
from domain.commands.node import Health
from domain.facts.hardware import ReportStamp
from domain.facts.node import CheckReport
from domain.ids import NodeId
from domain.policy import PoolPolicy
from domain.reservation import Reservation
from domain.states import NODE_STEPS, OVER, RESERVATION_STEPS, NodeState, ReservationState
from domain.units import Piece
from schemas.registry import registry
from tests import builders as b
from tests.billing import BilledWorld
from tests.world import World

N1 = NodeId("n1")
PASSED = tuple(CheckReport(name, passed=True, detail="") for name in PoolPolicy().acceptance_checks)


def report(health: Health, cause: str = "test", **more: Any) -> c.ReportHealth:
    return c.ReportHealth(b.POOL, health, cause, N1, **more)


def state(world: World) -> NodeState:
    return world.sequencer.ledger.nodes[N1].state


def stamp(number: int, session: str = "s1") -> ReportStamp:
    return ReportStamp("monitor", session, number)


@pytest.mark.parametrize(
    ("first", "second", "lost"),
    [
        ({"boot_id": "b1"}, {"boot_id": "b1"}, False),
        ({"boot_id": "b1"}, {"boot_id": "b2"}, True),
        (
            {"boot_id": "b1", "driver_load_id": "d1"},
            {"boot_id": "b1", "driver_load_id": "d2"},
            True,
        ),
        ({"boot_id": "b1"}, {}, False),
        ({}, {"boot_id": "b2"}, False),
    ],
)
def test_work_is_lost_when_a_known_boot_or_driver_load_is_another_one(
    first: dict[str, str], second: dict[str, str], *, lost: bool
) -> None:
    world = World(nodes=1)
    booked = world.booked(b.book("a", start=0, end=4))
    world.advance(b.at(1))
    world.send(report(Health.RECOVERED, **first))
    world.accept(report(Health.SUSPECTED))
    world.accept(report(Health.RECOVERED, **second), at=b.at(1, seconds=90))
    assert ("ReservationInterrupted" in world.types()) is lost
    assert state(world) is NodeState.READY
    assert world.nodes_of(booked) == ["n1"]
    world.check()


def test_a_reboot_that_nobody_saw_is_noticed_by_the_boot_id() -> None:
    world = BilledWorld(nodes=1)
    booked = world.booked(b.book("a", start=0, end=4))
    world.accept(report(Health.RECOVERED, boot_id="b1"))
    world.applied(booked, b.T0)
    world.accept(report(Health.RECOVERED, boot_id="b2"), at=b.at(2))
    assert world.types()[-2:] == ["NodeRecovered", "ReservationInterrupted"]
    assert booked.id not in world.sequencer.ledger.possessions
    world.applied(booked, b.at(2, seconds=30))
    world.advance(b.at(4))
    credited = [row["PricingQuantity"] for row in world.rows() if "shortage" in str(row["SkuId"])]
    assert [round(float(str(hours)) * 3600) for hours in credited] == [-8 * 30]
    world.check()


def test_a_pool_that_tests_tests_what_booted_anew_before_it_is_handed_over() -> None:
    world = World(nodes=0)
    world.accept(b.open_pool(acceptance=True))
    world.accept(b.join("n1"))
    checks = PASSED
    world.accept(c.ReportAcceptance(N1, checks))
    world.accept(report(Health.RECOVERED, boot_id="b1"))
    world.accept(report(Health.SUSPECTED))
    world.accept(report(Health.RECOVERED, boot_id="b2"))
    assert state(world) is NodeState.TESTING
    world.accept(c.ReportAcceptance(N1, checks))
    assert state(world) is NodeState.READY
    world.check()


def test_failed_tests_move_the_holders_that_wait() -> None:
    world = World(nodes=0)
    world.accept(b.open_pool(acceptance=True))
    for name in ("n1", "n2"):
        world.accept(b.join(name))
        world.accept(c.ReportAcceptance(NodeId(name), PASSED))
    world.accept(b.register("a"))
    world.accept(b.grant("a"))
    booked = world.booked(b.book("a", start=0, end=4))
    world.accept(report(Health.REBOOTING, "kernel-panic"))
    world.accept(report(Health.RECOVERED, boot_id="b2"))
    assert world.nodes_of(booked) == ["n1"]
    bad = (CheckReport("ecc", passed=False, detail="row remap pending"),)
    world.accept(c.ReportAcceptance(N1, bad))
    assert (state(world), world.nodes_of(booked)) == (NodeState.FAILED, ["n2"])
    world.check()


def test_what_a_monitor_tells_twice_or_late_is_remembered_and_changes_nothing() -> None:
    world = World(nodes=1)
    world.accept(report(Health.RECOVERED, stamp=stamp(5), occurred_at=b.T0))
    assert world.types()[-1] == "NodeHeard"
    late = report(Health.FAILED, stamp=stamp(4), occurred_at=b.T0)
    world.send(late)
    older = report(Health.FAILED, stamp=stamp(1, "s2"), occurred_at=b.at(0, 1))
    world.accept(report(Health.RECOVERED, stamp=stamp(6), occurred_at=b.at(0, 2)), at=b.at(1))
    world.send(older)
    assert world.types()[-1] == "CommandHadNoEffect"
    assert state(world) is NodeState.READY
    world.check()
    world.restart()
    world.send(late)
    assert state(world) is NodeState.READY


def test_reports_of_hardware_are_held_to_the_same_clock() -> None:
    world = BilledWorld(nodes=1)
    booked = world.booked(b.book("a", start=0, end=4))
    pieces = (Piece(N1, 0, 8000),)
    world.advance(b.at(1))
    for at, reason in ((b.at(2), "future-report"), (b.at(-1), "stale-report")):
        told = c.ReportApplied(N1, booked.id, pieces, at, world.stamp())
        before = world.seq
        assert world.refused(told, principal=b.SERVICE) == reason
        assert world.types(before) == ["CommandRefused"]
    world.check()


def test_a_loss_that_is_told_late_counts_from_when_it_occurred() -> None:
    world = World(nodes=1)
    world.accept(report(Health.FAILED, occurred_at=b.at(1)), at=b.at(1, seconds=50))
    assert recorded(world.store.events[-1], registry()).occurred_at == b.at(1)
    assert world.sequencer.ledger.nodes[N1].since == b.at(1)
    world.check()


def _endings(which: Reservation) -> list[Command]:
    return [
        c.Preempt(b.POOL, (which.id,), "test"),
        report(Health.FAILED),
        c.GiveBack(which.id),
    ]


@pytest.mark.parametrize("order", list(permutations((0, 0, 1, 1, 2, 2)))[::24])
def test_a_thing_ends_once_in_whatever_order_it_is_ended(order: tuple[int, ...]) -> None:
    world = World(nodes=1, grace_seconds=600)
    booked = world.booked(b.book("a", start=0, end=4))
    world.advance(b.at(1))
    for step, which in enumerate(order):
        world.send(_endings(booked)[which], at=b.at(1, seconds=step))
    world.advance(b.at(5))
    found = world.reservation(booked)
    assert found.state in {ReservationState.GIVEN_BACK, ReservationState.PREEMPTED}
    assert world.types().count("ReservationEnded") == 1
    assert found.held_milli(b.at(2)) == 0
    world.check()


def test_every_end_is_final_and_every_node_state_can_be_left_but_one() -> None:
    assert all(not RESERVATION_STEPS[over] for over in OVER)
    assert [s for s, after in NODE_STEPS.items() if not after] == [NodeState.RETIRED]

"""Failure: only what failed moves, shortage is told, returned units go back."""

from domain import commands as c
from domain.commands.node import Health
from domain.ids import NodeId
from domain.sizes import Size
from domain.states import NodeState, ReservationState
from tests import builders as b
from tests.world import World


def report(
    health: Health, node: str, slots: tuple[int, ...] = (), boot: str = ""
) -> c.ReportHealth:
    return c.ReportHealth(b.POOL, health, "ecc", NodeId(node), slots, boot_id=boot)


def test_only_the_failed_node_of_a_reservation_moves() -> None:
    world = World(nodes=4)
    booked = world.booked(b.book("a", nodes=2, start=0, end=4))
    world.advance(b.at(1))
    assert world.nodes_of(booked) == ["n1", "n2"]
    world.accept(report(Health.FAILED, "n2"))
    assert world.nodes_of(booked) in (["n1", "n3"], ["n1", "n4"])
    assert world.reservation(booked).state is ReservationState.ACTIVE
    world.check()


def test_without_a_spare_it_is_degraded_and_heals_when_the_node_returns() -> None:
    world = World(nodes=2)
    booked = world.booked(b.book("a", nodes=2, start=0, end=4))
    world.advance(b.at(1))
    world.accept(report(Health.FAILED, "n2"))
    assert world.reservation(booked).state is ReservationState.DEGRADED
    assert world.reservation(booked).short_milli(world.now) == 8000
    world.accept(report(Health.RECOVERED, "n2"), at=b.at(2))
    assert world.reservation(booked).state is ReservationState.ACTIVE
    assert world.nodes_of(booked) == ["n1", "n2"]
    world.check()


def test_one_gpu_of_eight_touches_one_reservation() -> None:
    world = World(nodes=1)
    for name in "cdefghij":
        world.accept(b.register(name))
        world.accept(b.grant(name))
    all_of_them = [world.booked(b.book(name, gpus=1, start=0, end=4)) for name in "cdefghij"]
    world.advance(b.at(1))
    world.accept(report(Health.FAILED, "n1", (3,)))
    states = [world.reservation(r).state for r in all_of_them]
    assert states.count(ReservationState.DEGRADED) == 1
    assert states.count(ReservationState.ACTIVE) == 7
    world.check()


def test_a_blip_costs_nothing() -> None:
    world = World(nodes=2)
    booked = world.booked(b.book("a", start=0, end=4))
    world.advance(b.at(1))
    world.accept(report(Health.SUSPECTED, "n1", boot="boot-1"))
    world.accept(b.book("b", start=1, end=2))
    assert world.refused(b.book("b", start=1, end=2, offers_max=0)) == "capacity"
    world.accept(report(Health.RECOVERED, "n1", boot="boot-1"), at=b.at(1, seconds=90))
    assert world.nodes_of(booked) == ["n1"]
    assert world.sequencer.ledger.nodes[NodeId("n1")].state is NodeState.READY
    world.check()


def test_a_shrink_holds_for_the_stretch_that_is_spent_elsewhere_as_well() -> None:
    world = World(nodes=2)
    booked = world.booked(b.book("a", gpus=2, start=1, end=5))
    here = NodeId(world.nodes_of(booked)[0])
    world.accept(c.PlanMaintenance(b.POOL, b.at(2), b.at(3), here))
    found = world.reservation(booked)
    assert len({h.piece.node_id for h in found.holdings}) == 2
    world.accept(c.ShrinkReservation(booked.id, Size(gpus=1)))
    for hour in (1, 2, 2.5, 3, 4):
        assert world.reservation(booked).held_milli(b.at(hour)) == 1000
    world.advance(b.at(4))
    world.check()


def test_a_drained_node_that_is_silent_for_a_moment_is_drained_again() -> None:
    world = World(nodes=2)
    world.accept(c.DrainNode(NodeId("n1")))
    node = world.sequencer.ledger.nodes[NodeId("n1")]
    assert node.state is NodeState.DRAINED
    world.accept(report(Health.SUSPECTED, "n1", boot="boot-1"))
    world.accept(report(Health.RECOVERED, "n1", boot="boot-1"))
    assert node.state is NodeState.DRAINED
    world.check()


def test_silence_past_its_grace_is_failure() -> None:
    world = World(nodes=2)
    booked = world.booked(b.book("a", start=0, end=4))
    world.advance(b.at(1))
    world.accept(report(Health.SUSPECTED, "n1"))
    world.advance(b.at(1, seconds=120))
    assert world.nodes_of(booked) == ["n2"]
    world.check()


def test_a_maintenance_without_a_spare_strips_and_its_early_end_heals() -> None:
    world = World(nodes=1)
    booked = world.booked(b.book("a", start=1, end=4))
    out = world.accept(c.PlanMaintenance(b.POOL, b.at(1), b.at(4), NodeId("n1")))
    assert world.reservation(booked).state is ReservationState.AT_RISK
    world.advance(b.at(2))
    assert world.reservation(booked).state is ReservationState.DEGRADED
    assert world.reservation(booked).held_milli(world.now) == 0
    ids = list(world.sequencer.ledger.maintenances)
    assert out.facts
    assert len(ids) == 1
    world.accept(c.CancelMaintenance(ids[0]), at=b.at(3))
    assert world.reservation(booked).state is ReservationState.ACTIVE
    assert world.reservation(booked).held_milli(world.now) == 8000
    world.check()


def test_a_guaranteed_ask_makes_borrowed_units_give_way() -> None:
    world = World(nodes=1)
    lent = world.booked(b.book("a", start=0, end=4, klass="borrowed"))
    world.advance(b.at(1))
    booked = world.booked(b.book("b", gpus=8, start=2, end=3))
    assert world.types()[-4:] == [
        "PreemptionOrdered",
        "NoticeIssued",
        "ReservationPreempted",
        "ReservationConfirmed",
    ]
    world.advance(b.at(2))
    assert world.reservation(lent).state is ReservationState.PREEMPTED
    assert world.reservation(booked).state is ReservationState.ACTIVE
    world.check()


def test_a_group_that_fails_is_one_fact_and_its_nodes() -> None:
    world = World(nodes=2)
    booked = world.booked(b.book("a", start=0, end=4))
    world.advance(b.at(1))
    down = c.ReportHealth(b.POOL, Health.FAILED, "switch", level="rack", group="r1")
    world.accept(down)
    assert world.types().count("DomainFailed") == 1
    assert world.types().count("NodeFailed") == 2
    assert world.reservation(booked).state is ReservationState.DEGRADED
    world.check()


def test_a_frozen_pool_books_nothing_until_it_is_thawed() -> None:
    world = World(nodes=1)
    world.accept(c.Freeze(("bookings",), "incident", b.POOL))
    assert world.refused(b.book("a")) == "frozen"
    world.accept(c.Thaw(("bookings",), "over", b.POOL))
    world.accept(b.book("a"))
    world.check()


def test_extend_shrink_and_give_back() -> None:
    world = World(nodes=1)
    booked = world.booked(b.book("a", gpus=4, start=0, end=1))
    world.accept(c.ExtendReservation(booked.id, b.at(2)))
    world.advance(b.at(0.5))
    world.accept(c.ShrinkReservation(booked.id, Size(gpus=1)))
    assert world.reservation(booked).held_milli(world.now) == 1000
    world.accept(b.book("b", gpus=7, start=0.5, end=1))
    world.accept(c.GiveBack(booked.id))
    assert world.reservation(booked).state is ReservationState.GIVEN_BACK
    world.check()

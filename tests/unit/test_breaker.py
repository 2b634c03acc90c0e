"""The circuit breaker: what trips it, what stands still then, and how it goes on."""

from domain import commands as c
from domain.commands.node import Health
from domain.ids import NodeId, PoolId
from domain.policy import Act
from domain.states import ReservationState
from tests import builders as b
from tests.world import World


def fail(name: str) -> c.ReportHealth:
    return c.ReportHealth(b.POOL, Health.FAILED, "test", NodeId(name))


def frozen(world: World) -> frozenset[str]:
    return world.sequencer.ledger.pools[PoolId(b.POOL)].frozen


def test_a_rack_that_fails_as_one_moves_nobody_once_the_breaker_trips() -> None:
    world = World(nodes=4, breaker_percent=50)
    booked = world.booked(b.book("a", start=0, end=4))
    world.advance(b.at(1))
    world.accept(c.ReportHealth(b.POOL, Health.FAILED, "switch", level="rack", group="r1"))
    assert frozen(world) == {Act.REPAIR.value, Act.PREEMPT.value, Act.PLAN.value}
    assert world.nodes_of(booked) == ["n1"]
    assert world.reservation(booked).state is ReservationState.ACTIVE
    world.check()
    world.restart()
    world.accept(c.Thaw(("repair",), "over", b.POOL))
    assert world.reservation(booked).state is ReservationState.DEGRADED
    world.check()


def test_failures_that_lie_apart_do_not_trip_it() -> None:
    world = World(nodes=4, breaker_percent=50, breaker_seconds=600)
    for hour, name in enumerate(("n1", "n2", "n3"), 1):
        world.accept(fail(name), at=b.at(hour))
    assert not frozen(world)
    world.accept(fail("n4"), at=b.at(3, seconds=599))
    assert not frozen(world)
    world.check()


def test_after_a_thaw_it_counts_anew() -> None:
    world = World(nodes=4, breaker_percent=25)
    world.accept(fail("n1"))
    world.accept(fail("n2"))
    assert frozen(world)
    world.accept(c.Thaw(("repair", "preempt", "plan"), "over", b.POOL))
    world.accept(fail("n3"))
    assert not frozen(world)
    world.accept(fail("n4"))
    assert frozen(world)
    world.check()


def test_preemptions_count_like_losses() -> None:
    world = World(nodes=2, breaker_percent=50)
    lent = world.booked(b.book("a", nodes=2, start=0, end=8, klass="borrowed"))
    world.advance(b.at(1))
    world.accept(c.Preempt(b.POOL, (lent.id,), "test"))
    assert Act.PREEMPT.value in frozen(world)
    world.check()
    world.restart()
    assert Act.PREEMPT.value in frozen(world)


def test_a_policy_with_a_breaker_out_of_range_is_refused() -> None:
    world = World(nodes=0)
    assert world.refused(b.open_pool(breaker_percent=0)) == "malformed"
    assert world.refused(b.open_pool(breaker_seconds=0)) == "malformed"

"""Who waits is served by arrival, or by dominant share where a pool asks for that."""

from typing import Any

import pytest

from connectors.planner.planner import PRINCIPAL, proposals
from domain import commands as c
from domain.fairness import Share, Waiting, queue_of, shares_of
from domain.ids import TenantId
from domain.reservation import Reservation
from solvers.queueing import queue
from solvers.repacking import repack
from solvers.trial import Copy
from tests import builders as b
from tests.world import World

A, B = TenantId("a"), TenantId("b")
DAY = 24 * b.HOUR


def a_world(half_life: int = DAY, nodes: int = 2, **policy: Any) -> World:
    return World(nodes, fairness_half_life_seconds=half_life, **policy)


def share(world: World, tenant: TenantId) -> Share:
    ledger = world.sequencer.ledger
    return shares_of(ledger, ledger.pools[b.POOL], (tenant,), world.now)[tenant]


def waits(world: World) -> tuple[Waiting, ...]:
    ledger = world.sequencer.ledger
    return queue_of(ledger, ledger.pools[b.POOL], world.now)


def both_wait(world: World, start: float = 10) -> tuple[Reservation, Reservation]:
    """First `a`, then `b` asks for the one node that moving a booking would free."""
    halves = [
        world.booked(b.book(name, gpus=4, start=start, end=start + 1)) for name in ("a", "a", "b")
    ]
    world.accept(c.CancelReservation(halves[0].id))
    first = world.booked(b.book("a", nodes=1, start=start, end=start + 1))
    second = world.booked(b.book("b", nodes=1, start=start, end=start + 1))
    assert (first.state.value, second.state.value) == ("queued", "queued")
    return first, second


def admitted(world: World) -> list[str]:
    before = world.seq
    for plan in proposals(world.sequencer.ledger, world.seq, world.now, repack):
        world.accept(plan, principal=PRINCIPAL)
    confirmed = [e for e in world.store.events if e.seq > before]
    return [e.stream.split("/")[1] for e in confirmed if e.type == "ReservationConfirmed.v1"]


def test_usage_halves_with_each_half_life_that_passes() -> None:
    world = a_world()
    world.booked(b.book("a", start=0, end=1))
    world.advance(b.at(1))
    fresh = share(world, A).used["gpus"]
    assert fresh == pytest.approx(8 * b.HOUR, rel=0.02)
    world.advance(b.at(25))
    assert share(world, A).used["gpus"] == pytest.approx(fresh / 2, rel=0.001)


def test_who_always_had_all_of_it_has_a_share_of_one() -> None:
    world = a_world(half_life=b.HOUR)
    world.booked(b.book("a", nodes=2, start=0, end=60))
    world.advance(b.at(50))
    assert share(world, A).dominant_ppm == pytest.approx(1_000_000, abs=10)


def test_what_was_given_back_or_never_ran_is_not_usage() -> None:
    world = a_world()
    booked = world.booked(b.book("a", start=0, end=10))
    world.booked(b.book("a", start=30, end=40))
    cancelled = world.booked(b.book("a", start=20, end=21))
    world.accept(c.CancelReservation(cancelled.id))
    world.accept(c.GiveBack(booked.id), at=b.at(1))
    world.advance(b.at(9))
    assert share(world, A).used["gpus"] < 8 * b.HOUR


def test_the_dominant_share_is_that_of_the_scarcest_model() -> None:
    world = a_world(nodes=4)
    world.accept(b.join("rare", model="B200"))
    world.booked(b.book("a", start=0, end=1, models=("B200",)))
    world.advance(b.at(1))
    mine = share(world, A)
    assert mine.dominant == "B200"
    assert mine.dominant_ppm > 4 * mine.used["gpus"] * 1_000_000 // mine.capacity["gpus"]


def test_by_arrival_who_came_first_is_served() -> None:
    world = a_world(half_life=0)
    world.booked(b.book("a", start=0, end=5))
    world.advance(b.at(6))
    first, second = both_wait(world)
    assert [each.reservation.id for each in waits(world)] == [first.id, second.id]
    assert all(each.share is None for each in waits(world))
    assert admitted(world) == [first.id]


def test_by_share_who_had_less_is_served_before_who_came_first() -> None:
    world = a_world()
    world.booked(b.book("a", start=0, end=5))
    world.advance(b.at(6))
    first, second = both_wait(world)
    assert [each.reservation.id for each in waits(world)] == [second.id, first.id]
    assert [(each.place, each.position) for each in waits(world)] == [(0, 1), (1, 2)]
    assert admitted(world) == [second.id]
    world.check()


def test_a_position_is_counted_in_its_class() -> None:
    world = a_world(nodes=2)
    world.accept(b.grant("b", gpus=0, borrow=100))
    first, _ = both_wait(world)
    borrowed = b.book("b", nodes=1, start=10, end=11, klass="borrowed")
    third = world.booked(borrowed)
    places = {each.reservation.id: each.position for each in waits(world)}
    assert places[third.id] == 1
    assert places[first.id] in {1, 2}


def test_a_start_is_estimated_without_moving_anyone() -> None:
    world = a_world()
    first, second = both_wait(world)
    sequencer = world.sequencer
    copy = Copy(sequencer.ledger, sequencer.placer, world.seq, world.now)
    pool = sequencer.ledger.pools[b.POOL]
    places = queue(copy, pool, lambda tenant: True)
    assert [place.start_estimate for place in places] == [b.at(11), b.at(11)]
    (mine,) = queue(copy, pool, lambda tenant: tenant == "b")
    assert mine.waiting.reservation.id == second.id
    world.accept(c.CancelReservation(first.id))
    world.check()

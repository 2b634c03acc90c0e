"""Pool-hours close apart: one after the other, each summing to its capacity exactly."""

from typing import Any

import pytest

from domain import commands as c
from domain.ids import PoolId
from domain.pool_hours import HOUR, PoolHour, StateSum
from domain.reservation import Reservation
from domain.units import Piece
from projections.closing import hours_to_close, pool_hours
from projections.reconciling import reconcile
from schemas.image import image_of, ledger_from
from tests import builders as b
from tests.billing import BilledWorld
from tests.world import World

CAPACITY = 2 * 8 * 3_600_000_000


def hour(at: float, *states: tuple[str, int], capacity: int = CAPACITY) -> PoolHour:
    return PoolHour(b.at(at), capacity, tuple(StateSum(*state) for state in states))


def close(*hours: PoolHour, pool: str = b.POOL, cutoff: int = 5) -> c.ClosePoolHours:
    return c.ClosePoolHours(PoolId(pool), cutoff, hours)


IDLE = ("idle", CAPACITY)


def test_hours_close_in_order_and_once() -> None:
    world = World()
    world.advance(b.at(3))
    world.accept(close(hour(0, IDLE), hour(1, IDLE)), principal=b.FINANCE)
    assert world.refused(close(hour(1, IDLE))) == "wrong-state", "closed already"
    assert world.refused(close(hour(3, IDLE))) == "window-invalid", "an hour would be left out"
    assert world.refused(close(hour(2, IDLE), hour(3, IDLE))) == "window-invalid", "not over yet"
    world.accept(close(hour(2, IDLE)))
    ledger = world.sequencer.ledger
    assert ledger.pool_hours == {b.POOL: b.at(3)}
    assert image_of(ledger_from(image_of(ledger))) == image_of(ledger)
    world.check()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (close(hour(0, IDLE), pool="nowhere"), "not-found"),
        (close(), "malformed"),
        (close(hour(0, IDLE), cutoff=0), "malformed"),
        (close(hour(0, ("busy", CAPACITY))), "malformed"),
        (close(hour(0, ("idle", 1), ("idle", CAPACITY - 1))), "malformed"),
        (close(hour(0, ("idle", CAPACITY + 1), ("down", -1))), "malformed"),
        (close(hour(0, IDLE), hour(2, IDLE)), "malformed"),
        (close(hour(0.5, IDLE)), "window-invalid"),
        (close(*(hour(at, IDLE) for at in range(169))), "limit"),
        (close(hour(0, ("idle", CAPACITY - 1))), "wrong-state"),
    ],
    ids=[
        "unknown-pool",
        "none",
        "no-cutoff",
        "unknown-state",
        "state-twice",
        "negative",
        "gap",
        "half-hour",
        "too-many",
        "unbalanced",
    ],
)
def test_hours_that_make_no_sense_are_refused(command: Any, reason: str) -> None:
    world = World()
    world.advance(b.at(200))
    assert world.refused(command) == reason
    assert world.sequencer.ledger.pool_hours == {}
    world.check()


def test_an_hour_that_does_not_balance_is_named_with_both_amounts() -> None:
    world = World()
    world.advance(b.at(2))
    refusal = world.send(close(hour(0, IDLE), hour(1, ("idle", CAPACITY - 7)))).refusal
    assert refusal is not None
    assert refusal.facts["id"] == f"{b.POOL}/{b.at(1)}"
    assert str(CAPACITY - 7) in refusal.facts["state"]


def test_a_tenant_may_not_close_hours() -> None:
    world = World()
    world.advance(b.at(2))
    assert world.refused(close(hour(0, IDLE)), principal=b.tenant("a")) == "forbidden"


def told(world: BilledWorld) -> tuple[Reservation, Piece]:
    """Half of a pool in use for two hours, and a day gone by."""
    booked = world.booked(b.book(gpus=8, start=1, end=3))
    piece = booked.holdings[0].piece
    world.ran(booked, b.at(1), b.at(3))
    world.advance(b.at(24))
    world.accept(b.register("later"))
    return booked, piece


def test_all_that_is_over_closes_in_parts_and_reconciles_whatever_comes_later() -> None:
    world = BilledWorld()
    booked, piece = told(world)
    ratings = world.ratings()
    books, _ = ratings.books(ratings.seq)
    (half,) = list(hours_to_close(books, b.at(12)))
    assert [part.start for part in half.hours] == [b.at(at) for at in range(12)]
    assert all(part.filled == part.capacity_gpu_microseconds for part in half.hours)
    assert {state.state for state in half.hours[1].states} >= {"reserved_used", "idle"}
    world.accept(half, principal=b.FINANCE)
    world.advance(b.at(30))
    world.observed(booked, (piece,), b.at(1), b.at(2), occupied=False)
    ratings = world.ratings()
    (rest,) = list(hours_to_close(ratings.books(ratings.seq)[0], b.at(30)))
    assert rest.hours[0].start == half.hours[-1].start + HOUR
    fresh = pool_hours(ratings.books(ratings.seq)[0])[b.POOL]
    assert fresh[b.at(1)] != half.hours[1], "a late fact says otherwise of a closed hour"
    assert reconcile(ratings).differences == [], "the hour stands as its cutoff told it"


def test_a_closed_hour_that_its_cutoff_does_not_tell_is_named() -> None:
    world = BilledWorld()
    told(world)
    world.accept(close(hour(0, IDLE), hour(1, IDLE), cutoff=world.ratings().seq))
    verdict = reconcile(world.ratings())
    assert verdict.count == 1
    assert "2026-01-01T01:00:00Z: closed as idle" in verdict.differences[0]

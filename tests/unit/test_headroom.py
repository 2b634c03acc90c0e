"""What is left of quota agrees with what is refused; oddities of grants are told and refuse nothing."""

import pytest

from domain import commands as c
from domain.headroom import oddities, usable
from domain.ids import TenantId
from domain.quota import Headroom
from domain.refusals import Reason
from domain.sizes import ReservationClass
from domain.timespan import Timespan
from tests import builders as b
from tests.world import World

GUARANTEED, BORROWED = ReservationClass.GUARANTEED, ReservationClass.BORROWED
A, PARENT = TenantId("a"), TenantId("parent")


@pytest.fixture
def world() -> World:
    world = World(nodes=0)
    for command in (
        b.open_pool(),
        b.join("n1"),
        b.join("n2"),
        b.register("parent"),
        b.register("a", "parent"),
        b.register("b", "parent"),
        b.grant("parent", 12),
        b.grant("a", 10, borrow=4),
        b.grant("b", 4),
    ):
        world.accept(command)
    return world


def left(world: World, klass: ReservationClass = GUARANTEED) -> tuple[int, TenantId | None]:
    span = Timespan(b.at(1), b.at(3))
    found = usable(world.sequencer.ledger, A, b.POOL, span, klass)
    return found.milli, found.binding.tenant_id if found.binding else None


def test_the_tightest_limit_on_the_way_up_binds(world: World) -> None:
    assert left(world) == (10_000, A)
    world.accept(b.book("b", gpus=4, start=2, end=4))
    assert left(world) == (8_000, PARENT)
    assert left(world, BORROWED) == (8_000, PARENT)
    world.accept(b.book("a", gpus=3, start=2, end=3))
    assert left(world) == (5_000, PARENT)


def test_what_is_usable_is_accepted_and_one_more_is_refused(world: World) -> None:
    world.accept(b.book("b", gpus=4, start=2, end=4))
    milli, binding = left(world)
    refused = world.send(b.book("a", gpus=milli // 1000 + 1, start=1, end=3)).refusal
    assert refused is not None
    assert (refused.reason, refused.facts["tenant_id"]) == (Reason.QUOTA, binding)
    world.accept(b.book("a", gpus=milli // 1000, start=1, end=3))
    assert left(world)[0] == 0


def test_nothing_is_usable_where_nothing_was_granted(world: World) -> None:
    world.accept(b.register("c"))
    found = usable(
        world.sequencer.ledger, TenantId("c"), b.POOL, Timespan(b.at(1), b.at(2)), GUARANTEED
    )
    assert (found.milli, found.binding) == (0, None)


def test_a_grant_that_ends_inside_the_window_leaves_nothing(world: World) -> None:
    world.accept(c.GrantQuota(TenantId("b"), b.POOL, 6_000, start=b.at(0), end=b.at(2)))
    span = Timespan(b.at(1), b.at(3))
    found = usable(world.sequencer.ledger, TenantId("b"), b.POOL, span, GUARANTEED)
    assert found.levels[0] == Headroom(TenantId("b"), 4_000, 0, b.at(2))
    assert found.milli == 4_000, "6 more are there for an hour only"


def test_odd_grants_are_told(world: World) -> None:
    kinds = {
        (o.kind, o.tenant_id): (o.milli, o.limit_milli)
        for o in oddities(world.sequencer.ledger, b.at())
    }
    assert kinds == {("children-exceed-parent", PARENT): (14_000, 12_000)}
    world.accept(b.grant("parent", 8))
    kinds = {
        (o.kind, o.tenant_id): (o.milli, o.limit_milli)
        for o in oddities(world.sequencer.ledger, b.at())
    }
    assert kinds == {("promised-beyond-capacity", PARENT): (20_000, 16_000)}

"""Booking: concrete units, or the first reason that applies."""

import pytest

from domain import commands as c
from domain.consent import OverflowMode
from domain.sizes import Size
from domain.states import ReservationState
from tests import builders as b
from tests.world import World


def test_a_booking_holds_concrete_units() -> None:
    world = World(nodes=1)
    booked = world.booked(b.book(gpus=3))
    assert [
        (h.piece.node_id, h.piece.first_milli, h.piece.width_milli) for h in booked.holdings
    ] == [("n1", 0, 3000)]
    world.check()


def test_the_same_hole_is_given_once() -> None:
    world = World(nodes=1)
    one, two = (world.submission(b.book(name)) for name in ("a", "b"))
    first, second = world.sequencer.submit([one, two])
    assert first.refusal is None
    assert second.refusal is not None
    assert second.refusal.reason.code == "capacity"
    assert second.refusal.offers[0].start == b.at(2)
    world.check()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (b.book(gpus=-1), "size-invalid"),
        (b.book(gpus=2**63 - 1), "size-invalid"),
        (b.book(share=1000), "size-invalid"),
        (b.book(share=1500), "size-invalid"),
        (b.book(start=1, end=1), "window-invalid"),
        (b.book(start=2, end=1), "window-invalid"),
        (b.book(start=1, end=100 * 366 * 24), "window-invalid"),
        (b.book("nobody"), "not-found"),
        (b.book(models=("B200",)), "shape-impossible"),
        (
            c.RequestReservation(b.book().tenant_id, b.POOL, Size(), b.at(1), b.at(2)),
            "size-invalid",
        ),
    ],
)
def test_silly_asks_have_reasons_of_their_own(command: c.Command, reason: str) -> None:
    world = World(nodes=1)
    before = world.types()
    assert world.refused(command) == reason
    assert world.types() == [*before, "CommandRefused"]
    world.check()


def test_shares_of_one_gpu_are_one_tenants() -> None:
    world = World(nodes=1)
    one = world.booked(b.book("a", share=600))
    two = world.booked(b.book("a", share=400))
    other = world.booked(b.book("b", share=100))
    assert one.holdings[0].piece.slots == two.holdings[0].piece.slots
    assert other.holdings[0].piece.slots != one.holdings[0].piece.slots
    world.check()


def test_a_share_is_renumbered_where_no_run_is_free_throughout() -> None:
    world = World(nodes=0)
    world.accept(b.open_pool())
    world.accept(b.join("n1", gpus=1))
    world.accept(b.register("a"))
    world.accept(b.grant("a"))
    world.booked(b.book("a", share=500, start=1, end=2))
    world.booked(b.book("a", share=500, start=2, end=3))
    world.booked(b.book("a", share=500, start=1, end=3))
    assert world.refused(b.book("a", share=1, start=2, end=3)) == "capacity"
    world.check()


def test_no_quota_and_no_capacity_are_different_refusals() -> None:
    world = World(nodes=1)
    world.accept(b.register("c"))
    assert world.refused(b.book("c", gpus=1)) == "quota"
    world.accept(b.grant("c", gpus=4))
    world.accept(b.book("c", gpus=4))
    assert world.refused(b.book("c", gpus=1)) == "quota"
    world.check()


def test_the_narrowest_ancestor_limits_what_is_usable() -> None:
    world = World(nodes=2)
    world.accept(b.register("team"))
    world.accept(b.register("child", "team"))
    world.accept(b.grant("team", gpus=4))
    world.accept(b.grant("child", gpus=8))
    world.accept(b.book("child", gpus=4))
    assert world.refused(b.book("child", gpus=1)) == "quota"
    world.check()


def test_a_hold_lapses_in_silence_and_its_units_are_free() -> None:
    world = World(nodes=1)
    held = world.booked(b.book("a", start=0, end=1, hold_seconds=5))
    world.advance(b.at(seconds=10))
    assert world.reservation(held).state is ReservationState.LAPSED
    assert "ReservationLapsed" in world.types()
    world.accept(b.book("b", start=0.01, end=1))
    world.check()


def test_a_hold_cannot_be_confirmed_once_it_has_lapsed() -> None:
    world = World(nodes=1)
    held = world.booked(b.book("a", hold_seconds=5))
    confirm = c.ConfirmHold(held.id)
    assert world.refused(confirm, at=b.at(seconds=5)) == "wrong-state"
    world.check()


def test_back_to_back_bookings_share_an_instant() -> None:
    world = World(nodes=1)
    one = world.booked(b.book("a", start=1, end=2))
    two = world.booked(b.book("b", start=2, end=3))
    world.advance(b.at(2))
    kinds = world.types()[-2:]
    assert kinds == ["ReservationEnded", "ReservationStarted"]
    assert world.reservation(one).state is ReservationState.ENDED
    assert world.reservation(two).state is ReservationState.ACTIVE
    world.check()


def test_more_gpus_than_a_node_become_whole_nodes_and_a_remainder() -> None:
    world = World(nodes=3)
    booked = world.booked(b.book("a", gpus=20))
    assert sorted(h.piece.width_milli for h in booked.holdings) == [4000, 8000, 8000]
    world.check()


def test_a_gang_stays_in_one_group_of_a_level() -> None:
    world = World(nodes=0)
    world.accept(b.open_pool())
    for name, rack in (("n1", "r1"), ("n2", "r2"), ("n3", "r2")):
        world.accept(b.join(name, rack=rack))
    world.accept(b.register("a"))
    world.accept(b.grant("a"))
    booked = world.booked(b.book("a", nodes=2, same_level="rack"))
    assert world.nodes_of(booked) == ["n2", "n3"]
    assert world.refused(b.book("a", nodes=2, same_level="rack", offers_max=0)) == "capacity"
    world.check()


def test_a_stranger_is_told_not_found_and_noted() -> None:
    world = World(nodes=1)
    mine = world.booked(b.book("a"))
    outcome = world.send(c.CancelReservation(mine.id), principal=b.tenant("b"))
    assert outcome.refusal is not None
    assert outcome.refusal.reason.code == "not-found"
    assert world.types()[-2:] == ["AccessDenied", "CommandRefused"]
    assert world.reservation(mine).state is ReservationState.CONFIRMED
    world.check()


def test_overflow_needs_consent_and_has_a_cap() -> None:
    world = World(nodes=2)
    world.accept(b.register("c"))
    world.accept(b.grant("c", gpus=1))
    assert world.refused(b.book("c", gpus=4)) == "quota"
    world.accept(c.ConsentOverflow(b.book("c").tenant_id, b.POOL, OverflowMode.AUTO, 8000))
    booked = world.booked(b.book("c", gpus=8))
    assert booked.klass.value == "overflow"
    assert world.refused(b.book("c", gpus=4)) == "spend-cap"
    world.advance(b.at(2))
    assert world.types().count("OverflowStarted") == world.types().count("OverflowEnded") == 1
    world.check()

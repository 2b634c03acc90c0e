"""Reservations without an end: terms, their renewal, and the notice when one does not fit."""

from typing import Any

from domain import commands as c
from domain.commands.node import Health
from domain.consent import OverflowMode
from domain.facts.reservation import RenewalRefused
from domain.ids import NodeId, TenantId
from domain.reservation import Reservation
from domain.sizes import Size
from domain.submission import OutcomeKind
from domain.timespan import Instant
from schemas.image import image_of, ledger_from
from schemas.registry import registry
from tests import builders as b
from tests.world import World

TERMS = {
    "term_seconds": 10 * b.HOUR,
    "term_notice_seconds": 2 * b.HOUR,
    "term_retry_seconds": b.HOUR,
}


def a_world(nodes: int = 1, **policy: Any) -> World:
    return World(nodes, **{**TERMS, **policy})


def open_ended(gpus: int = 8, start: float = 0, **more: Any) -> c.RequestReservation:
    return c.RequestReservation(
        TenantId("a"), b.POOL, Size(gpus=gpus), b.at(start), until_released=True, **more
    )


def refusals(world: World) -> list[RenewalRefused]:
    facts = [registry().decode(e.type, e.body) for e in world.store.events]
    return [fact for fact in facts if isinstance(fact, RenewalRefused)]


def due_of(world: World, which: Reservation) -> Instant | None:
    renewal = world.reservation(which).renewal
    return renewal.due if renewal else None


def test_a_term_is_committed_and_renewed_the_notice_ahead_of_its_end() -> None:
    world = a_world()
    booked = world.booked(open_ended())
    assert (booked.end, due_of(world, booked)) == (b.at(10), b.at(8))
    world.advance(b.at(8))
    assert (world.reservation(booked).end, due_of(world, booked)) == (b.at(18), b.at(16))
    world.advance(b.at(100))
    assert world.reservation(booked).end == b.at(106)
    world.check()


def test_a_renewal_that_fell_due_during_a_snapshot_comes_out_of_it() -> None:
    world = a_world()
    booked = world.booked(open_ended())
    world.advance(b.at(7))
    restored = ledger_from(image_of(world.sequencer.ledger))
    assert image_of(restored) == image_of(world.sequencer.ledger)
    assert (b.at(8), 11, booked.id) in restored.timers.heap
    world.restart()
    world.advance(b.at(9))
    assert world.reservation(booked).end == b.at(18)


def test_neither_an_end_nor_a_duration_goes_with_it() -> None:
    world = a_world()
    for more in ({"end": b.at(2)}, {"duration_seconds": 60}):
        assert world.refused(open_ended(**more)) == "window-invalid"


def test_the_terms_are_those_of_the_day_on_which_it_was_booked() -> None:
    world = a_world()
    booked = world.booked(open_ended())
    policy = world.sequencer.ledger.pools[b.POOL].policy
    other = type(policy)(term_seconds=20 * b.HOUR, term_notice_seconds=b.HOUR)
    world.accept(c.ChangePolicy(b.POOL, other))
    world.advance(b.at(8))
    assert world.reservation(booked).end == b.at(18)


def test_a_notice_as_long_as_the_term_is_no_policy() -> None:
    world = World(0)
    bad = b.open_pool(term_seconds=b.HOUR, term_notice_seconds=b.HOUR)
    assert world.refused(bad) == "malformed"


def test_quota_that_runs_out_is_told_in_time_and_may_come_back() -> None:
    world = World(0)
    world.accept(b.open_pool(**TERMS))
    world.accept(b.join("n1"))
    world.accept(b.register("a"))
    world.accept(c.GrantQuota(TenantId("a"), b.POOL, 8000, 0, end=b.at(12)))
    booked = world.booked(open_ended())
    world.advance(b.at(8, 1))
    (refused,) = refusals(world)
    assert (refused.reason, refused.again_at) == ("quota", b.at(9))
    assert refused.evidence["at"] == str(b.at(12))
    world.accept(b.grant("a", gpus=8))
    world.advance(b.at(9, 1))
    assert world.reservation(booked).end == b.at(19)
    world.check()


def test_an_ancestor_whose_quota_is_short_is_not_named() -> None:
    world = World(0)
    for command in (
        b.open_pool(**TERMS),
        b.join("n1"),
        b.register("above"),
        b.register("a", "above"),
        c.GrantQuota(TenantId("above"), b.POOL, 8000, 0, end=b.at(12)),
        b.grant("a"),
    ):
        world.accept(command)
    world.booked(open_ended())
    world.advance(b.at(8, 1))
    (refused,) = refusals(world)
    assert refused.reason == "quota"
    assert "tenant_id" not in refused.evidence


def test_the_notice_is_given_once_and_the_last_try_is_before_the_end() -> None:
    world = a_world()
    booked = world.booked(open_ended())
    world.accept(b.book("b", start=10, end=11))
    before = world.seq
    world.advance(b.at(10))
    assert [again.again_at for again in refusals(world)] == [b.at(9), None]
    assert all("free_milli" not in refused.evidence for refused in refusals(world))
    assert world.types(before).count("NoticeIssued") == 1
    assert world.reservation(booked).state.value == "ended"
    world.check()


def test_it_stays_on_its_units_where_it_can_and_moves_where_it_must() -> None:
    world = a_world(2, gap_seconds=600)
    booked = world.booked(open_ended())
    assert world.nodes_of(booked) == ["n1"]
    world.advance(b.at(9))
    assert world.reservation(booked).end == b.at(18)
    assert len(world.reservation(booked).holdings) == 2
    inner, last = sorted(world.reservation(booked).holdings, key=lambda h: h.start)
    assert (inner.gap, last.gap) == (0, 600_000_000)
    later = [world.booked(b.book("b", start=19, end=20)) for _ in range(2)]
    (second,) = (each for each in later if world.nodes_of(each) == ["n2"])
    world.accept(c.CancelReservation(second.id))
    world.advance(b.at(18))
    assert world.nodes_of(booked) == ["n2"]
    left = [h for h in world.reservation(booked).holdings if h.end == b.at(18)]
    assert [(h.piece.node_id, h.gap) for h in left] == [("n1", 600_000_000)]
    world.check()


def test_a_frozen_pool_renews_nothing_until_it_is_thawed() -> None:
    world = a_world()
    booked = world.booked(open_ended())
    world.accept(c.Freeze(("bookings",), "test"))
    world.advance(b.at(8, 1))
    assert [each.reason for each in refusals(world)] == ["frozen"]
    world.accept(c.Thaw(("bookings",), "test"))
    world.advance(b.at(9, 1))
    assert world.reservation(booked).end == b.at(19)


def test_a_team_that_has_closed_is_renewed_no_more() -> None:
    world = a_world()
    world.booked(open_ended())
    world.accept(c.CloseTenant(TenantId("a")))
    world.advance(b.at(8, 1))
    assert [each.reason for each in refusals(world)] == ["wrong-state"]


def test_a_hold_that_is_confirmed_late_is_renewed_at_once() -> None:
    world = a_world()
    held = world.booked(open_ended(hold_seconds=9 * b.HOUR))
    world.advance(b.at(8, 30))
    assert world.reservation(held).end == b.at(10)
    world.accept(c.ConfirmHold(held.id), at=b.at(8, 60))
    world.advance(b.at(8, 61))
    assert world.reservation(held).end == b.at(18, 60)
    world.check()


def test_an_extension_puts_the_renewal_off() -> None:
    world = a_world()
    booked = world.booked(open_ended())
    world.accept(c.ExtendReservation(booked.id, b.at(12)))
    world.advance(b.at(9))
    assert (world.reservation(booked).end, due_of(world, booked)) == (b.at(12), b.at(10))


def test_what_is_short_is_renewed_with_what_it_has() -> None:
    world = a_world()
    booked = world.booked(open_ended())
    world.accept(c.ReportHealth(b.POOL, Health.FAILED, "ecc", NodeId("n1"), (0,)))
    world.advance(b.at(8, 1))
    current = world.reservation(booked)
    assert (current.state.value, current.end) == ("degraded", b.at(18))
    assert current.short_milli(b.at(17)) == 1000
    world.check()


def test_what_must_give_way_is_not_renewed() -> None:
    world = a_world()
    booked = world.booked(open_ended())
    world.accept(c.Preempt(b.POOL, (booked.id,), "test"))
    world.advance(b.at(20))
    assert world.reservation(booked).state.value == "preempted"


def test_beyond_quota_it_goes_on_while_the_cap_allows_it() -> None:
    world = World(0)
    for command in (b.open_pool(**TERMS), b.join("n1"), b.register("a"), b.grant("a", gpus=0)):
        world.accept(command)
    world.accept(c.ConsentOverflow(TenantId("a"), b.POOL, OverflowMode.AUTO, 8000))
    booked = world.booked(open_ended())
    assert booked.klass.value == "overflow"
    world.advance(b.at(9))
    assert world.reservation(booked).end == b.at(18)
    world.accept(c.ConsentOverflow(TenantId("a"), b.POOL, OverflowMode.NEVER, 0))
    assert world.refused(c.ExtendReservation(booked.id, b.at(20))) == "spend-cap"
    world.advance(b.at(17))
    assert [each.reason for each in refusals(world)] == ["spend-cap", "spend-cap"]


def test_what_has_an_end_is_left_as_it_is() -> None:
    world = a_world()
    booked = world.booked(b.book())
    assert world.send(c.StopRenewing(booked.id)).kind is OutcomeKind.NO_EFFECT

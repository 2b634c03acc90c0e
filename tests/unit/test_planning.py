"""The planner makes room by moving what may move, and is never believed without a check."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from connectors.planner.planner import PRINCIPAL, proposals
from domain import commands as c
from domain.commands.node import Health
from domain.ids import NodeId, ReservationId
from domain.policy import PoolPolicy
from domain.sizes import Parts, ReservationClass
from domain.snapshot import PlanAnswer, PlanProblem, problem_of
from domain.states import ReservationState
from domain.units import Piece
from schemas.image import image_of, ledger_from
from solvers.checker import faults
from solvers.child import solve_in_child
from solvers.repacking import repack
from tests import builders as b
from tests.unit import plan_liars
from tests.world import World


def fragmented() -> tuple[World, ReservationId]:
    """Two nodes with four free GPUs each, and a whole node asked for: it waits."""
    world = World(nodes=2)
    halves = [world.booked(b.book("a", gpus=4)) for _ in range(3)]
    world.accept(c.CancelReservation(halves[0].id))
    waiting = world.booked(b.book("b", nodes=1))
    assert waiting.state is ReservationState.QUEUED
    return world, waiting.id


def problem(world: World) -> PlanProblem:
    return problem_of(world.sequencer.ledger, b.POOL, world.seq, world.now)


def propose(world: World, solve: Callable[[PlanProblem], PlanAnswer] = repack) -> None:
    for plan in proposals(world.sequencer.ledger, world.seq, world.now, solve):
        world.accept(plan, principal=PRINCIPAL)


def test_what_waits_is_admitted_by_moving_what_may_move() -> None:
    world, waiting = fragmented()
    propose(world)
    found = world.sequencer.ledger.reservations[waiting]
    assert found.state is ReservationState.CONFIRMED
    assert found.held_milli(found.start) == 8000
    assert world.types()[-1] == "PlanAdopted"
    world.check()


def test_a_gang_that_waits_is_kept_in_one_group() -> None:
    world = World(nodes=0)
    world.accept(b.open_pool())
    for name, rack in (("n1", "r1"), ("n2", "r1"), ("n3", "r2"), ("n4", "r2")):
        world.accept(b.join(name, rack=rack))
    for name in ("a", "b"):
        world.accept(b.register(name))
        world.accept(b.grant(name))
    whole = [world.booked(b.book("a", nodes=1)) for _ in range(3)]
    world.accept(c.CancelReservation(whole[1].id))
    waiting = world.booked(b.book("b", nodes=2, same_level="rack"))
    assert waiting.state is ReservationState.QUEUED
    propose(world)
    assert world.nodes_of(waiting) in (["n1", "n2"], ["n3", "n4"])
    world.check()


def test_what_sits_on_a_cordoned_node_stays_and_stands_in_nobodys_way() -> None:
    world = World(nodes=3)
    third = world.booked(b.book("a", nodes=1))
    halves = [world.booked(b.book("a", gpus=4)) for _ in range(3)]
    world.accept(c.CancelReservation(halves[0].id))
    waiting = world.booked(b.book("b", nodes=1))
    where = world.nodes_of(third)
    world.accept(c.CordonNode(NodeId(where[0])))
    propose(world)
    assert world.reservation(waiting).state is ReservationState.CONFIRMED
    assert world.nodes_of(third) == where
    world.check()


def test_what_is_short_of_units_stays_and_makes_no_problem_unsolvable() -> None:
    world = World(nodes=4)
    gang = world.booked(b.book("a", nodes=2))
    halves = [world.booked(b.book("a", gpus=4)) for _ in range(3)]
    world.accept(c.CancelReservation(halves[0].id))
    waiting = world.booked(b.book("b", nodes=1))
    assert waiting.state is ReservationState.QUEUED
    lost = NodeId(world.nodes_of(gang)[0])
    world.accept(c.ReportHealth(b.POOL, Health.FAILED, "test", lost))
    here = problem(world)
    assert gang.id not in {ask.id for ask in here.movable}
    assert repack(here).evidence["status"] == "OPTIMAL"
    propose(world)
    assert world.reservation(waiting).state is ReservationState.CONFIRMED
    world.check()


def test_half_a_larger_node_is_no_whole_node_and_no_group_is_not_one_group() -> None:
    world, waiting = fragmented()
    here = problem(world)
    placed = {**repack(here).moves, **repack(here).admitted}
    small = replace(here.waiting[0], parts=replace(here.waiting[0].parts, node_gpus=4))
    half = replace(placed[waiting][0], width_milli=4000)
    assert faults(replace(here, waiting=(small,)), {**placed, waiting: (half,)})
    shape = replace(here.waiting[0].shape, same_level="room")
    roomed = replace(here, waiting=(replace(here.waiting[0], shape=shape),))
    assert faults(roomed, placed)


def test_what_fits_in_no_way_is_refused_with_its_proof() -> None:
    world, waiting = fragmented()
    world.accept(b.book("b", gpus=1))
    answer = repack(problem(world))
    assert answer.is_proven
    assert answer.evidence["confirmed"] == "OPTIMAL, the same"
    propose(world)
    assert world.sequencer.ledger.reservations[waiting].state is ReservationState.REFUSED
    assert "QueuedRefused" in world.types()
    world.check()


def test_who_keeps_its_node_keeps_its_gpus() -> None:
    world = World(nodes=3)
    halves = [world.booked(b.book("a", gpus=4)) for _ in range(5)]
    for gone in (halves[0], halves[2]):
        world.accept(c.CancelReservation(gone.id))
    waiting = world.booked(b.book("b", nodes=1))
    here = problem(world)
    answer = repack(here)
    assert waiting.id in answer.admitted
    ((name, pieces),) = answer.moves.items()
    at = {ask.id: ask.at for ask in here.movable}
    assert {p.node_id for p in pieces} != {p.node_id for p in at[name]}


def test_more_gpus_are_admitted_before_more_heads() -> None:
    world, waiting = fragmented()
    here = problem(world)
    small = [
        replace(here.waiting[0], id=ReservationId(f"small {n}"), parts=Parts(0, 8, 1, 0))
        for n in range(2)
    ]
    answer = repack(replace(here, waiting=(*here.waiting, *small)))
    assert waiting in answer.admitted
    assert set(answer.refused) == {each.id for each in small}


def test_a_plan_is_the_same_every_time() -> None:
    world, _ = fragmented()
    answers = [repack(problem(world)) for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0].evidence["status"] == "OPTIMAL"


def test_a_stale_plan_is_refused_whole() -> None:
    world, waiting = fragmented()
    plans = proposals(world.sequencer.ledger, world.seq, world.now, repack)
    moved = plans[0].moves[0].reservation_id
    world.accept(c.CancelReservation(moved))
    world.accept(plans[0], principal=PRINCIPAL)
    assert world.types()[-1] == "PlanRefused"
    assert world.sequencer.ledger.reservations[waiting].state is ReservationState.QUEUED
    world.check()


@pytest.mark.parametrize(
    ("solve", "outcome"),
    [
        (plan_liars.hangs, "timeout"),
        (plan_liars.crashes, "crashed"),
        (plan_liars.eats_memory, "crashed"),
        (plan_liars.lies, "broken"),
        (plan_liars.mumbles, "unreadable"),
        (plan_liars.says_nothing, "broken"),
    ],
)
def test_a_solver_that_misbehaves_becomes_a_named_outcome(
    solve: Callable[[PlanProblem], PlanAnswer], outcome: str
) -> None:
    world, waiting = fragmented()
    # Only the one that hangs is to meet its limit, however busy the machine is.
    wall_seconds = 5.0 if outcome == "timeout" else 90.0
    answer = solve_in_child(problem(world), solve, wall_seconds=wall_seconds)
    assert answer.evidence["outcome"] == outcome
    assert answer.refused == (waiting,)
    assert not answer.is_proven


def test_the_child_answers_as_the_solver_does() -> None:
    world, _ = fragmented()
    answer = solve_in_child(problem(world))
    assert answer.evidence.pop("outcome") == "solved"
    assert answer == repack(problem(world))


def test_a_refusal_is_proven_by_a_second_child_or_not_at_all() -> None:
    world, waiting = fragmented()
    lied = solve_in_child(problem(world), plan_liars.refuses)
    assert (lied.refused, lied.is_proven) == ((waiting,), False)
    assert lied.evidence["confirmed"] == "OPTIMAL, another"
    world.accept(b.book("b", gpus=1))
    true = solve_in_child(problem(world))
    assert (true.refused, true.is_proven) == ((waiting,), True)
    assert true.evidence["confirmed"] == "OPTIMAL, the same"


def test_guaranteed_comes_before_borrowed_however_large() -> None:
    world, waiting = fragmented()
    here = problem(world)
    borrowed = replace(
        here.waiting[0], id=ReservationId("large"), klass=ReservationClass.BORROWED, place=0
    )
    small = replace(here.waiting[0], id=waiting, parts=Parts(0, 8, 5, 0), place=1)
    answer = repack(replace(here, waiting=(borrowed, small)))
    assert set(answer.admitted) == {waiting}
    assert answer.is_proven


@pytest.mark.parametrize("first", ["x", "y"])
def test_of_equals_the_one_that_waits_longer_is_admitted(first: str) -> None:
    world, _ = fragmented()
    here = problem(world)
    asks = tuple(
        replace(here.waiting[0], id=ReservationId(name), place=0 if name == first else 1)
        for name in ("x", "y")
    )
    assert set(repack(replace(here, waiting=asks)).admitted) == {first}


def test_the_queue_is_in_the_order_in_which_they_came() -> None:
    world, first = fragmented()
    second = world.booked(b.book("b", nodes=1))
    assert second.state is ReservationState.QUEUED
    places = {ask.id: ask.place for ask in problem(world).waiting}
    assert places == {first: 0, second.id: 1}
    again = ledger_from(image_of(world.sequencer.ledger))
    restored = problem_of(again, b.POOL, world.seq, world.now)
    assert {ask.id: ask.place for ask in restored.waiting} == places


def test_every_single_fault_is_caught() -> None:
    world, waiting = fragmented()
    here = problem(world)
    sound = repack(here)
    placed = {**sound.moves, **sound.admitted}
    assert faults(here, placed) == []
    pieces = placed[waiting]
    wrong: dict[str, tuple[Piece, ...]] = {
        "too little": (replace(pieces[0], width_milli=7000),),
        "unknown node": (replace(pieces[0], node_id=NodeId("nowhere")),),
        "beyond the node": (replace(pieces[0], first_milli=1000),),
        "half a GPU": (replace(pieces[0], first_milli=500, width_milli=8000),),
        "another's units": (Piece(here.movable[0].at[0].node_id, 0, 8000),),
        "nothing": (),
    }
    for name, instead in wrong.items():
        others = {} if name == "another's units" else placed
        assert faults(here, {**others, waiting: instead}), name
    assert faults(here, {**placed, ReservationId("stranger"): pieces})
    gone = replace(here, nodes=tuple(n for n in here.nodes if n.id != pieces[0].node_id))
    assert faults(gone, placed)


def test_what_has_another_gap_than_the_pool_asks_for_now_is_left_where_it_is() -> None:
    world, _ = fragmented()
    world.accept(b.book("a", nodes=2, start=2, end=3))
    assert len(problem(world).movable) == 2
    world.accept(c.ChangePolicy(b.POOL, PoolPolicy(gap_seconds=300)))
    assert problem(world).movable == ()
    assert repack(problem(world)).evidence["status"] == "OPTIMAL"
    propose(world)
    world.check()

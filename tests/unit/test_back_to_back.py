"""Fifty pairs back to back on the same GPUs: each release precedes its grant, in one tick."""

from domain.ids import NodeId
from domain.states import ReservationState
from tests import builders as b
from tests.world import World

PAIRS = 50


def test_fifty_pairs_change_hands_in_one_tick() -> None:
    world = World(nodes=6)
    world.accept(b.join("n7", gpus=2))
    first = [world.booked(b.book("a", gpus=1, start=1, end=2)) for _ in range(PAIRS)]
    second = [world.booked(b.book("b", gpus=1, start=2, end=3)) for _ in range(PAIRS)]
    where = {h.piece for each in first for h in each.holdings}
    assert where == {h.piece for each in second for h in each.holdings}
    assert len(where) == PAIRS
    world.advance(b.at(1))
    before = world.seq
    world.advance(b.at(2))
    assert {world.reservation(r).state for r in first} == {ReservationState.ENDED}
    assert {world.reservation(r).state for r in second} == {ReservationState.ACTIVE}
    told = world.types(after=before)
    ends = [at for at, name in enumerate(told) if name == "ReservationEnded"]
    starts = [at for at, name in enumerate(told) if name == "ReservationStarted"]
    assert len(ends) == len(starts) == PAIRS
    assert max(ends) < min(starts)
    lanes = world.sequencer.ledger.nodes[NodeId("n7")].lanes
    assert not lanes.is_empty
    world.check()

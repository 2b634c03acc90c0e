"""Nobody gives way in a circle, or too soon, whatever is asked in whatever order."""

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.postgres.recorded import recorded
from domain.facts.pool import PreemptionOrdered
from domain.ids import ReservationId
from domain.sizes import ReservationClass
from schemas.registry import registry
from tests import builders as b
from tests.world import World

LEAST_HOURS = 2

ASKS = st.tuples(
    st.sampled_from(("a", "b")),
    st.sampled_from((4, 8, 16)),
    st.integers(0, 4),
    st.integers(1, 4),
    st.sampled_from(("guaranteed", "borrowed")),
    st.integers(0, 1),
)
"""Tenant, GPUs, hours until the start, hours, class, hours that pass before."""


def orders(world: World) -> Iterator[PreemptionOrdered]:
    for event in world.store.events:
        fact = recorded(event, registry()).fact
        if isinstance(fact, PreemptionOrdered):
            yield fact


def circle(edges: dict[ReservationId, ReservationId]) -> bool:
    """Whether following who gave way to whom comes back to where it began."""
    for start, after in edges.items():
        seen, at = {start}, after
        while at in edges:
            if at in seen:
                return True
            seen.add(at)
            at = edges[at]
        if at in seen:
            return True
    return False


@settings(max_examples=40, deadline=None)
@given(st.lists(ASKS, min_size=3, max_size=14))
def test_giving_way_has_no_circle_and_leaves_everybody_its_least_time(
    asks: list[tuple[str, int, int, int, str, int]],
) -> None:
    world = World(nodes=2, runtime_seconds_min=LEAST_HOURS * 3600)
    for tenant, gpus, until, hours, klass, passed in asks:
        first = (world.now - b.T0) / 3_600_000_000 // 1 + passed
        world.advance(b.at(first))
        ask = b.book(
            tenant,
            gpus=gpus,
            start=first + until,
            end=first + until + hours,
            klass=klass,
            offers_max=0,
        )
        world.send(ask)
    known = world.sequencer.ledger.reservations
    edges: dict[ReservationId, ReservationId] = {}
    for order in orders(world):
        assert order.for_reservation is not None
        for victim in order.victims:
            assert victim not in edges, "who gave way gave way twice"
            edges[victim] = order.for_reservation
            gone = known[victim]
            assert gone.klass is ReservationClass.BORROWED
            assert gone.end <= gone.start or gone.end - gone.start >= LEAST_HOURS * 3_600_000_000
    assert not circle(edges)
    world.check()


def test_the_hunt_knows_a_circle_when_it_sees_one() -> None:
    one, two, three = (ReservationId(name) for name in ("one", "two", "three"))
    assert circle({one: two, two: three, three: one})
    assert not circle({one: two, two: three})

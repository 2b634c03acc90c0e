"""Spans, timelines and lanes agree with their plainest definitions; the placer with brute force."""

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from domain.ids import NodeId, ReservationId
from domain.lanes import Lanes
from domain.timeline import DAY, Timeline
from domain.timespan import Instant, Timespan
from domain.units import Capacity, Piece, pieces_of_mask
from solvers.placement.index import PlacementIndex

instants = st.integers(0, 60).map(Instant)
spans = st.builds(Timespan, instants, instants)


@given(spans, spans)
def test_what_is_cut_out_of_a_span_and_what_is_left_make_it_up(
    one: Timespan, other: Timespan
) -> None:
    inside = {t for t in range(61) if one.holds(Instant(t))}
    cut = {t for t in range(61) if other.holds(Instant(t))}
    left = {t for part in one.without(other) for t in range(61) if part.holds(Instant(t))}
    assert left == inside - cut
    assert {t for t in range(61) if (one & other).holds(Instant(t))} == inside & cut
    assert one.overlaps(other) == bool(inside & cut)
    assert one.covers(other) == (cut <= inside)


@given(st.integers(), st.integers(), st.integers())
def test_capacities_add_like_numbers(a: int, b: int, c: int) -> None:
    x, y, z = Capacity(a), Capacity(b), Capacity(c)
    assert (x + y) + z == x + (y + z)
    assert x + y - y == x
    assert (x < y) == (a < b)


@given(st.integers(0, 255))
def test_a_mask_and_its_pieces_say_the_same(mask: int) -> None:
    pieces = list(pieces_of_mask(NodeId("n"), mask))
    assert sum(1 << slot for piece in pieces for slot in piece.slots) == mask
    assert all(one.end_milli < two.first_milli for one, two in pairwise(pieces))


step = st.tuples(st.integers(0, 40), st.integers(1, 15), st.integers(1, 9))


@given(st.lists(step, max_size=25), st.integers(0, 50), st.integers(1, 20))
def test_a_timeline_knows_its_peak(
    steps: list[tuple[int, int, int]], start: int, size: int
) -> None:
    unit = DAY // 4 + 1
    timeline = Timeline()
    for first, length, amount in steps:
        timeline.add(first * unit, (first + length) * unit, amount)

    def level(at: int) -> int:
        return sum(a for f, n, a in steps if f * unit <= at < (f + n) * unit)

    end = (start + size) * unit
    inside = [
        start * unit,
        *(f * unit for f, _, _ in steps),
        *((f + n) * unit for f, n, _ in steps),
    ]
    wanted = max(level(at) for at in inside if start * unit <= at < end)
    peak, at = timeline.peak(start * unit, end)
    assert (peak, level(at)) == (wanted, wanted)
    for first, length, amount in steps:
        timeline.add(first * unit, (first + length) * unit, -amount)
    assert timeline == Timeline()


hold = st.tuples(st.integers(0, 7), st.integers(1, 8), st.integers(0, 30), st.integers(1, 10))


@given(st.lists(hold, max_size=30), hold)
def test_lanes_see_every_conflict(
    holds: list[tuple[int, int, int, int]], asked: tuple[int, int, int, int]
) -> None:
    lanes = Lanes()
    kept: list[tuple[Piece, int, int]] = []

    def clashes(piece: Piece, start: int, end: int) -> bool:
        return any(piece.overlaps(p) and start < e and s < end for p, s, e in kept)

    for first, width, start, length in holds:
        piece = Piece(NodeId("n"), first * 1000, width * 1000)
        if not clashes(piece, start, start + length):
            lanes.add(piece, Instant(start), Instant(start + length), ReservationId("r"))
            kept.append((piece, start, start + length))
    first, width, start, length = asked
    piece = Piece(NodeId("n"), first * 1000, width * 1000)
    found = lanes.conflict(
        piece.first_milli, piece.end_milli, Instant(start), Instant(start + length)
    )
    assert (found is not None) == clashes(piece, start, start + length)
    for piece, begin, end in kept:
        lanes.remove(piece, Instant(begin), Instant(end), ReservationId("r"))
    assert lanes.is_empty


def test_the_placer_agrees_with_brute_force_and_with_a_rebuild() -> None:
    random = Random(3)
    index = PlacementIndex(0, horizon_slots=64)
    for number in range(24):
        index.add_node((8, 4, 2, 1)[number % 4], "A" if number % 3 else "B", [])
        index.set_open(number, is_open=number != 5)
    held: list[tuple[int, int, int, int]] = []

    def free(node: int, slot: int, start: int, end: int) -> bool:
        return not any(n == node and g == slot and s < end and start < e for n, g, s, e in held)

    for _ in range(3_000):
        start = random.randrange(-2_000, 80_000)
        end = start + random.randrange(1, 9_000)
        models = random.choice(((), ("A",), ("B",)))
        denied = index.denied(models, None, ())
        usable = [n for n in range(24) if n != 5 and (not models or index.models[n] in models)]
        if random.random() < 0.6:
            count = random.choice((1, 1, 2, 4, 8))
            found = index.find_gpus(count, start, end, denied)
            there = any(
                sum(free(n, g, start, end) for g in range(index.gpus[n])) >= count for n in usable
            )
            assert (found is not None) == there
            if found:
                for slot in range(8):
                    if found[1] >> slot & 1:
                        assert free(found[0], slot, start, end)
                        held.append((found[0], slot, start, end))
                        index.hold(found[0], slot * 1000, 1000, start, end, 1)
        elif random.random() < 0.3:
            size = index.denied(models, None, (), 8)
            nodes = index.find_nodes(2, start, end, size, None)
            whole = [
                n
                for n in usable
                if index.gpus[n] == 8 and all(free(n, g, start, end) for g in range(8))
            ]
            assert (nodes is not None) == (len(whole) >= 2)
            assert nodes is None or set(nodes) <= set(whole)
        elif held:
            node, slot, s, e = held.pop(random.randrange(len(held)))
            index.release(node, slot * 1000, 1000, s, e, 1)
    rows = [row.copy() for row in index._rows]
    index._rebuild()
    assert all((a == b).all() for a, b in zip(rows, index._rows, strict=True))

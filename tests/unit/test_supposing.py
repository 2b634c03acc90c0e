"""What if: by the rules that decide, on a copy, and drawn."""

from xml.etree import ElementTree as ET

import pytest

from connectors.http import charts
from connectors.http.explained import supposed
from domain import commands as c
from domain.commands.node import Health
from domain.ids import NodeId, TenantId
from domain.states import ReservationState
from domain.timespan import Timespan
from projections.gantt import Bar, Gantt, Line, number_ticks, svg
from solvers.repacking import repack
from solvers.supposing import NotSupposable, Supposed, Supposition, suppose
from tests import builders as b
from tests.unit.test_explaining import unharmed
from tests.world import World

SVG = "{http://www.w3.org/2000/svg}"


def what_if(world: World, **supposition: object) -> Supposed:
    with unharmed(world) as copy:
        return suppose(copy, Supposition(b.POOL, **supposition), repack)  # type: ignore[arg-type]


def test_losing_a_node_moves_its_holders_and_nobody_else() -> None:
    world = World(nodes=3)
    first = world.booked(b.book("a", gpus=8))
    second = world.booked(b.book("b", gpus=8))
    found = what_if(world, lost=(NodeId("n1"),))
    (moved,) = found.moved
    assert moved.reservation_id == first.id
    assert (moved.before is not None, moved.after is not None) == (True, True)
    assert moved.after is not None
    assert moved.after.nodes == ("n3",)
    assert second.id not in {each.reservation_id for each in found.differences}
    assert found.facts == {"NodeFailed": 1, "UnitsReassigned": 1}


def test_what_is_supposed_is_what_then_happens() -> None:
    world = World(nodes=3)
    for _ in range(3):
        world.booked(b.book("a", gpus=8))
    found = what_if(world, lost=(NodeId("n2"),))
    world.accept(c.ReportHealth(b.POOL, Health.FAILED, "xid79", NodeId("n2")), principal=b.SERVICE)
    for each in found.differences:
        assert each.after is not None
        now = world.sequencer.ledger.reservations[each.reservation_id]
        assert now.state.value == each.after.state == "at-risk"
        assert now.short_milli(now.start) == each.after.short_milli == 8000
    assert len(found.differences) == 1


def test_less_quota_takes_nothing_away_and_is_told_as_over() -> None:
    world = World(nodes=2)
    world.booked(b.book("a", gpus=12))
    found = what_if(world, quota={TenantId("a"): 8000}, request=b.book("a", gpus=1))
    (over,) = found.over
    assert (over.tenant_id, over.nominal_milli, over.booked_milli) == ("a", 8000, 12_000)
    assert found.refusal is not None
    assert found.refusal.reason.code == "quota"
    assert found.differences == ()
    assert supposed(found)["request"]["reason"] == "quota"


def test_more_quota_lets_a_request_in_also_for_a_tenant_without_any() -> None:
    world = World(nodes=2)
    world.accept(b.register("new"))
    assert world.refused(b.book("new", gpus=4)) == "quota"
    found = what_if(world, quota={TenantId("new"): 8000}, request=b.book("new", gpus=4))
    assert found.refusal is None
    assert supposed(found)["request"]["outcome"] == "confirmed"
    assert world.refused(b.book("new", gpus=4)) == "quota"


def test_a_request_that_fits_by_moving_others_is_told_with_the_moves() -> None:
    world = World(nodes=2)
    halves = [world.booked(b.book("a", gpus=4)) for _ in range(3)]
    world.accept(c.CancelReservation(halves[0].id))
    found = what_if(world, request=b.book("b", nodes=1))
    told = supposed(found)
    assert told["plan"]["plan"] == "PlanAdopted"
    assert told["request"]["outcome"] == ReservationState.CONFIRMED.value
    assert [move["gpus"] for move in told["moves"]] == [4.0]
    assert len(world.sequencer.ledger.pools[b.POOL].queued) == 0


def test_what_does_not_exist_is_not_supposed() -> None:
    world = World(nodes=1)
    with pytest.raises(NotSupposable, match="n9"):
        what_if(world, lost=(NodeId("n9"),))
    with pytest.raises(NotSupposable, match="nobody"):
        what_if(world, quota={TenantId("nobody"): 1})


def drawn(text: str) -> ET.Element:
    return ET.fromstring(text)  # our own text


def test_a_supposition_is_drawn_with_its_moves_and_its_down_time() -> None:
    world = World(nodes=3)
    for _ in range(2):
        world.booked(b.book("a", gpus=8))
    lost = (NodeId("n1"),)
    found = what_if(world, lost=lost)
    ledger = world.sequencer.ledger
    span = Timespan(b.at(0), b.at(4))
    chart = charts.supposed_chart(ledger, ledger.pools[b.POOL], span, found, lost, world.now)
    picture = drawn(svg(chart))
    titles = [each.text or "" for each in picture.iter(f"{SVG}title")]
    assert "n1: supposed lost" in titles
    assert sum(text.endswith("was here") for text in titles) == 1
    assert len(picture.findall(f"{SVG}path[@class='a']")) == 1
    rows = [each.text for each in picture.iter(f"{SVG}text")]
    assert {"r1 n1", "r1 n2", "r1 n3", "a", "down"} <= set(rows)


def test_a_plan_is_drawn_with_a_bar_for_every_piece_that_is_held() -> None:
    world = World(nodes=2)
    world.booked(b.book("a", gpus=3))
    world.booked(b.book("b", nodes=1))
    world.accept(c.PlanMaintenance(b.POOL, b.at(2), b.at(3), NodeId("n1")))
    ledger = world.sequencer.ledger
    pool = ledger.pools[b.POOL]
    chart = charts.plan_chart(ledger, pool, Timespan(b.at(0), b.at(4)), world.now, ())
    told = charts.as_json(chart)
    assert [(bar["node_id"], bar["width_milli"]) for bar in told["held"]] in (
        [("n1", 3000), ("n2", 8000)],
        [("n2", 8000), ("n1", 3000)],
    )
    assert [down["why"] for down in told["down"]] == ["maintenance"]
    titles = [each.text or "" for each in drawn(svg(chart)).iter(f"{SVG}title")]
    assert sum("GPU, guaranteed confirmed" in text for text in titles) == 2


def test_of_a_large_fleet_the_first_nodes_are_drawn_and_it_is_said() -> None:
    lines = tuple(Line(f"n{number:04}", 8) for number in range(1000))
    bars = tuple(Bar(line.node_id, 0, 8000, 0, 50, "<t>", "r&d") for line in lines)
    text = svg(Gantt("many", 0, 100, number_ticks(0, 100), lines, bars))
    assert "the first 400 of 1000 nodes" in text
    assert len(list(drawn(text).iter(f"{SVG}rect"))) < 1000


@pytest.mark.parametrize(("start", "end"), [(0, 1), (0, 96), (-500, 10_000), (7, 8)])
def test_ticks_lie_inside_and_are_few(start: int, end: int) -> None:
    ticks = number_ticks(start, end)
    assert all(start <= at <= end for at, _ in ticks)
    assert 1 <= len(ticks) <= 11

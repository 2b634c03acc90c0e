"""Refusals of plans are distrusted too, and a trace's plan is held against its bookings."""

from dataclasses import replace
from random import Random

import pytest

from connectors.traces.jobs import TraceJob, TraceNode, TraceRefused
from connectors.traces.planned import instance_of, planned
from domain.sizes import Size
from solvers.planning.confirming import confirm_refusals
from solvers.planning.instance import Instance, InstanceAsk, InstanceNode, Why
from solvers.planning.planner import Effort, plan
from tests.instances import small

GREEDY = Effort(improves=False)


def test_every_reason_of_a_sound_plan_is_confirmed() -> None:
    looked = 0
    for seed in range(150):
        instance = small(seed)
        found, _ = plan(instance, GREEDY)
        confirmed = confirm_refusals(instance, found)
        assert confirmed.faults == (), seed
        looked += sum(confirmed.held.values())
    assert looked > 40


def test_who_would_fit_is_not_refused_with_any_reason() -> None:
    caught = 0
    for seed in range(80):
        instance = small(seed)
        found, _ = plan(instance, GREEDY)
        dice = Random(seed)
        fixed = {a.id for a in instance.asks if a.deadline - a.duration == a.release}
        chosen = [each for each in found.accepted if each.id in fixed]
        chosen = [e for e in chosen if not next(a for a in instance.asks if a.id == e.id).started]
        if not chosen:
            continue
        dropped = dice.choice(chosen)
        why = dice.choice([each for each in Why if each is not Why.WINDOW])
        lied = replace(
            found,
            accepted=tuple(each for each in found.accepted if each != dropped),
            refused=(*found.refused, (dropped.id, why)),
        )
        faults = confirm_refusals(instance, lied).faults
        assert any(fault.startswith(dropped.id) for fault in faults), (seed, why)
        caught += 1
    assert caught > 40


def ask(name: str, **more: object) -> InstanceAsk:
    given: dict[str, object] = {
        "tenant": "t",
        "gpus": 0,
        "nodes": 0,
        "release": 0,
        "deadline": 10,
        "duration": 10,
        "value": 1,
    }
    return InstanceAsk(name, **(given | more))  # type: ignore[arg-type]


@pytest.mark.parametrize("claimed", [Why.MODEL, Why.ISOLATION, Why.QUOTA, Why.MAINTENANCE])
def test_a_reason_that_is_not_the_reason_is_caught(claimed: Why) -> None:
    nodes = tuple(InstanceNode(f"n{n}", f"r{n}", "H100", 8) for n in range(2))
    instance = Instance("two", nodes, (ask("gang", nodes=2, one_rack=True),), {})
    found, _ = plan(instance, GREEDY)
    assert found.refused == (("gang", Why.TOPOLOGY),)
    assert confirm_refusals(instance, found).held == {"topology": 1}
    lied = replace(found, refused=(("gang", claimed),))
    assert confirm_refusals(instance, lied).faults


def test_a_window_that_may_move_is_left_out_and_counted() -> None:
    instance = Instance(
        "one",
        (InstanceNode("n", "r", "H100", 8),),
        (ask("a", nodes=1, value=2), ask("b", nodes=1, deadline=15)),
        {},
    )
    found, _ = plan(instance, GREEDY)
    assert confirm_refusals(instance, found).not_looked_at == 1


def job(number: int, start: int, end: int, size: Size, tenant: str = "t") -> TraceJob:
    return TraceJob(f"j{number}", tenant, start, end, size)


def test_shares_of_a_trace_are_parts_of_one_gpu_and_of_one_tenant() -> None:
    nodes = [TraceNode("m", 2, "T4")]
    half = Size(share_milli=500)
    jobs = [job(n, 0, 10, half, tenant) for n, tenant in enumerate("aabbb")]
    told = planned(jobs, nodes, booked=15_000)
    assert (told["accepted"], told["refused"]) == (4, {"capacity": 1})
    assert told["refusals_confirmed"] == 1
    assert (told["arrival_gpu_s"], told["plan_gpu_s"], told["bound_gpu_s"]) == (15, 20, 20)
    assert told["beats_arrival"]
    less = Size(share_milli=400)
    apart = [job(0, 0, 10, less, "a"), job(1, 0, 10, less, "b")]
    other = planned(apart, [TraceNode("m", 1, "T4")], 0)
    assert other["refused"] == {"isolation": 1}


def test_several_gpus_of_a_trace_are_of_one_machine() -> None:
    nodes = [TraceNode("m", 2, "T4"), TraceNode("o", 2, "T4")]
    jobs = [
        job(0, 0, 10, Size(gpus=1)),
        job(1, 0, 10, Size(share_milli=300)),
        job(2, 0, 10, Size(gpus=2)),
        job(3, 0, 1, Size(gpus=2)),
    ]
    instance = instance_of(jobs, nodes)
    assert [each.one_rack for each in instance.asks] == [False, False, True, True]
    told = planned(jobs, nodes, 0)
    assert told["accepted"] == 3
    assert told["refusals_wrong"] == []


def test_without_shares_machines_are_nodes_and_more_than_one_is_whole_ones() -> None:
    nodes = [TraceNode(f"m{n}", 8, "V100") for n in range(3)]
    jobs = [job(0, 0, 5, Size(gpus=16)), job(1, 0, 5, Size(gpus=4)), job(2, 0, 5, Size(gpus=4))]
    instance = instance_of(jobs, nodes)
    assert [(each.nodes, each.gpus) for each in instance.asks] == [(2, 0), (0, 4), (0, 4)]
    assert planned(jobs, nodes, 0)["plan_pct_of_bound"] == 100.0


def test_shares_beside_jobs_larger_than_a_machine_are_refused_with_a_reason() -> None:
    jobs = [job(0, 0, 5, Size(share_milli=5)), job(1, 0, 5, Size(gpus=9))]
    with pytest.raises(TraceRefused, match="larger than a machine"):
        instance_of(jobs, [TraceNode("m", 8, "T4")])

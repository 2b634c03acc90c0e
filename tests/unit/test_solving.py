"""Instances: what is read, what a plan is, what its certificate proves, what the checker catches."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from connectors.cli.app import app
from solvers.planning import planner
from solvers.planning.attempts import best_placement
from solvers.planning.certificate import Certificate, bound_of
from solvers.planning.checking import plan_faults
from solvers.planning.columns import columns_of
from solvers.planning.improving import Step, Task, improve
from solvers.planning.instance import Instance, InstancePlan, Why
from solvers.planning.planner import Effort, PlanBroken, plan, plan_hash, told
from solvers.planning.prices import guide_of
from solvers.planning.reading import InstanceRefused, read_instances
from solvers.planning.repair import repair
from tests.instances import ask, best_of_all, broken, node, small

DATA = Path(os.environ.get("GPULEDGER_DATA", Path(__file__).parents[3] / "shared" / "data"))
ADVERSARIAL = DATA / "adversarial" / "instances.json"
PLAIN = {
    "nodes": [{"id": "n0", "rack": "k", "type": "H100", "gpus": 8, "down": []}],
    "reservations": [
        {"id": "a", "gpus": 8, "release": 0, "deadline": 5, "duration": 5, "value": 3}
    ],
}
SEEDS = 400
FAULTS = 1_000


def solved(instance: Instance) -> InstancePlan:
    """As `plan` does, with CP-SAT in this process."""
    columns = columns_of(instance)
    guide = guide_of(columns)
    places, bound = best_placement(columns, guide).places(), guide.bound
    for step in improve(Task(columns, places, bound, 5.0)):
        places = step.places
        bound = bound if step.bound is None else min(bound, step.bound)
    return told(columns, places, bound, {})


@pytest.mark.skipif(
    not ADVERSARIAL.exists(), reason=f"no instances in {ADVERSARIAL}; set GPULEDGER_DATA"
)
@pytest.mark.parametrize("number", range(12))
def test_an_adversarial_instance_is_solved_to_its_proven_optimum(number: int) -> None:
    content = json.loads(ADVERSARIAL.read_text())
    expect = content[number]["expect"]
    found = solved(read_instances(content)[0][number])
    assert (found.value, found.bound) == (expect["value"], expect["value"])
    names = [placed.id for placed in found.accepted]
    assert set(expect.get("accepted", names)) == set(names)
    assert found.moves == expect.get("moves", found.moves)
    starts = {placed.id: placed.start for placed in found.accepted}
    assert expect.get("start", {}).items() <= starts.items()
    assert [name for name, _ in found.refused] == expect.get("overflow", list(dict(found.refused)))
    if "core" in expect:
        assert {why.value for _, why in found.refused} == {expect["core"]}


@pytest.mark.parametrize("part", range(4))
def test_nothing_is_better_than_the_plan_by_trying_everything(part: int) -> None:
    for seed in range(part, SEEDS, 4):
        instance = small(seed)
        value, moves = best_of_all(instance)
        found = solved(instance)
        assert plan_faults(instance, found) == [], seed
        assert found.value == value, seed
        assert found.bound == value, seed
        assert found.moves == moves or not instance.min_moves, seed
        guide = guide_of(columns_of(instance))
        assert guide.bound >= value, seed


def test_the_greedy_levels_are_sound_and_the_solver_is_above_them() -> None:
    greedy = better = 0
    for seed in range(60):
        instance = small(seed)
        found, _ = plan(instance, Effort(improves=False))
        assert plan_faults(instance, found) == []
        greedy += found.value
        better += solved(instance).value
    assert greedy < better


def test_every_single_fault_is_caught() -> None:
    caught = 0
    dice = Random(7)
    instances = [(each, solved(each)) for each in map(small, range(40))]
    while caught < FAULTS:
        instance, sound = dice.choice(instances)
        wrong = broken(instance, sound, dice)
        if wrong is not None and wrong != sound:
            assert plan_faults(instance, wrong), (instance.name, wrong)
            caught += 1


def test_a_plan_is_the_same_however_the_lists_are_shuffled() -> None:
    dice = Random(3)
    for seed in range(30):
        instance = small(seed)
        hashes = set()
        for _ in range(4):
            nodes = dice.sample(instance.nodes, len(instance.nodes))
            asks = dice.sample(instance.asks, len(instance.asks))
            shuffled = replace(instance, nodes=tuple(nodes), asks=tuple(asks))
            hashes.add(plan_hash(solved(shuffled)))
        assert len(hashes) == 1


def test_a_certificate_proves_its_bound_without_a_solver_and_cannot_be_forged() -> None:
    instance = Instance("x", (node("n0"),), (ask("a", gpus=8, value=5), ask("b", gpus=8)), {})
    columns = columns_of(instance)
    certificate = guide_of(columns).certificate
    assert bound_of(columns, certificate) == 5
    assert bound_of(columns, Certificate(1)) == 6, "without prices everyone fits"
    for forged in (
        replace(certificate, models={"H100": ((0, -1),)}),
        replace(certificate, models={"H100": ((3, 1), (3, 1))}),
        replace(certificate, models={"H100": ((0, 1 << 61), (1, 1 << 61))}),
        replace(certificate, scale=0),
    ):
        with pytest.raises(ValueError, match="certificate"):
            bound_of(columns, forged)


@pytest.mark.parametrize(
    ("instance", "why"),
    [
        (Instance("", (), (ask("a", gpus=1),), {}), Why.CAPACITY),
        (Instance("", (node("n"),), (ask("a", gpus=9),), {}), Why.CAPACITY),
        (Instance("", (node("n"),), (ask("a", gpus=1, duration=11),), {}), Why.WINDOW),
        (Instance("", (node("n"),), (ask("a", gpus=1, models=("A",)),), {}), Why.MODEL),
        (Instance("", (node("n"),), (ask("a", gpus=2),), {"t0": 1}), Why.QUOTA),
        (Instance("", (node("n", down=((0, 9),)),), (ask("a", gpus=1),), {}), Why.MAINTENANCE),
        (
            Instance(
                "", (node("n"), node("m", rack="k1")), (ask("a", nodes=2, one_rack=True),), {}
            ),
            Why.TOPOLOGY,
        ),
    ],
)
def test_who_is_refused_is_told_which_rule_is_in_the_way(instance: Instance, why: Why) -> None:
    found, _ = plan(instance, Effort(improves=False))
    assert found.refused == (("a", why),)
    assert (found.value, found.bound) == (0, 0) or why is Why.MAINTENANCE


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ([{}], "/0/nodes"),
        ([PLAIN | {"nodes": 7}], "/0/nodes"),
        ([PLAIN | {"nodes": [{"id": "n0", "gpus": 65}]}], "/0/nodes/0/gpus"),
        ([PLAIN | {"nodes": [{"id": "n0", "gpus": 8, "down": [[3, 3]]}]}], "/0/nodes/0/down/0"),
        ([PLAIN | {"nodes": PLAIN["nodes"] * 2}], "/0/nodes/1/id"),
        ([PLAIN | {"objective": "most"}], "/0/objective"),
        ([PLAIN | {"quota": {"a/b": -1}}], "/0/quota/a~1b"),
        ([PLAIN | {"name": "x"}] * 2, "/1/name"),
        (PLAIN | {"reservations": [{"id": "a"}]}, "/reservations/0"),
        ("x", "the file"),
    ],
)
def test_what_is_no_instance_is_refused_with_its_place(change: Any, pointer: str) -> None:
    with pytest.raises(InstanceRefused) as refused:
        read_instances(change)
    assert str(refused.value).startswith(pointer + ":")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("gpus", 0), ("gpus", -1), ("gpus", 1.5), ("gpus", True), ("nodes", 1)),
        *(("duration", 0), ("value", -1), ("value", 10**13), ("release", "x"), ("deadline", 0)),
        *(("topo", "row"), ("at", ["nowhere"]), ("at", ["n0", "n0"]), ("started", True)),
        *(("types", "H100"), ("types", [7]), ("id", ""), ("exclusive", 1)),
    ],
)
def test_a_silly_reservation_is_refused_with_its_field(field: str, value: object) -> None:
    silly = PLAIN["reservations"][0] | {field: value}
    with pytest.raises(InstanceRefused, match="/reservations/0"):
        read_instances([PLAIN | {"reservations": [silly]}])


def test_plans_are_drawn_each_into_a_file_of_its_number(tmp_path: Path) -> None:
    file, picture = tmp_path / "x.json", tmp_path / "plan.svg"
    file.write_text(json.dumps([PLAIN]))
    run(str(file), "--greedy", "--svg", str(picture))
    assert picture.read_text().startswith("<svg")
    file.write_text(json.dumps([PLAIN, PLAIN | {"name": "other"}]))
    run(str(file), "--greedy", "--svg", str(picture))
    assert "other" in (tmp_path / "plan-2.svg").read_text()
    words = ["solve", str(file), "--greedy", "--svg", str(tmp_path / "no" / "plan.svg")]
    assert CliRunner().invoke(app, words).exit_code == 1


def test_the_bound_of_a_certificate_is_worked_out_by_the_command(tmp_path: Path) -> None:
    file, proofs = tmp_path / "x.json", tmp_path / "proofs.json"
    file.write_text(json.dumps([PLAIN]))
    run(str(file), "--certificates", str(proofs))
    words = ["--json", "plan", "certificate", "check", str(file), str(proofs)]
    result = CliRunner().invoke(app, words)
    assert json.loads(result.stdout)[0]["bound"] == 3
    told = json.loads(proofs.read_text())
    for wrong in ([told[0] | {"scale": 0}], [told[0] | {"name": "other"}], [7], {"name": 1}):
        proofs.write_text(json.dumps(wrong))
        assert CliRunner().invoke(app, words).exit_code == 1
    forged = [told[0] | {"quotas": {"nobody": [[0, 1]]}}]
    proofs.write_text(json.dumps(forged))
    assert CliRunner().invoke(app, words).exit_code == 1


def test_after_a_loss_only_what_was_lost_moves() -> None:
    gang = ask("gang", nodes=2, value=9)
    small_ones = [ask(f"s{n}", gpus=4, value=2) for n in range(2)]
    nodes = tuple(node(f"n{n}") for n in range(4))
    columns = columns_of(Instance("loss", nodes, (gang, *small_ones), {}))
    placement = best_placement(columns, guide_of(columns))
    places = placement.places()
    at = places[0][1]
    found = repair(placement, places, np.array([at[0]]), 3)
    assert found.affected.tolist() == [0]
    assert set(found.replaced) == {0}
    (fresh,) = found.replaced[0]
    held = {n for _, nodes_of in places.values() for n in nodes_of}
    assert fresh not in held
    again = repair(placement, places, np.array([at[1]]), 3)
    assert again.overflow == (0,), "no other node is free"


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["--json", "solve", *words])


def test_solve_prints_a_plan_for_each_instance(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(json.dumps([PLAIN | {"why": "untold"}]))
    proofs = tmp_path / "proofs.json"
    result = run(str(file), "--certificates", str(proofs))
    assert result.exit_code == 0
    (found,) = json.loads(result.stdout)
    assert found.pop("seconds") >= 0
    units = [
        {"node": "n0", "gpu_index": at, "first_milli": 0, "width_milli": 1000} for at in range(8)
    ]
    assert found == {
        "name": "instance",
        "value": 3,
        "accepted": [{"id": "a", "start": 0, "units": units}],
        "refused": [],
        "moves": 0,
        "bound": 3,
    }
    assert json.loads(proofs.read_text())[0]["name"] == "instance"


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "[7]", '{"nodes": [], "x": NaN}'])
def test_a_file_that_is_none_ends_with_a_clear_refusal(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    result = run(str(file))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "x.json" in result.stderr


def test_a_file_that_is_not_there_or_too_large_is_refused(tmp_path: Path) -> None:
    assert run(str(tmp_path / "none.json")).exit_code == 1
    file = tmp_path / "large.json"
    with file.open("wb") as large:
        large.truncate((128 << 20) + 1)
    result = run(str(file))
    assert result.exit_code == 1
    assert "split it" in result.stderr


def lies(task: Task) -> Iterator[Step]:
    """Everyone at once on the first node, called optimal."""
    everyone: dict[int, tuple[int, tuple[int, ...]]] = dict.fromkeys(
        range(len(task.columns.value)), (0, (0,))
    )
    yield Step(everyone, sum(task.columns.value.tolist()))


def dies(task: Task) -> Iterator[Step]:
    yield Step({0: (0, (0,))}, None)
    os._exit(9)


def contested() -> Instance:
    """Two of three fit by count, and none of the orders finds the best."""
    exclusive = [
        ask(n, gpus=1, tenant=n, value=v, exclusive=True)
        for n, v in zip("abc", (1, 2, 3), strict=True)
    ]
    return Instance("contested", (node("n0"),), tuple(exclusive), {})


@pytest.mark.parametrize(("work", "outcome"), [(lies, "broken"), (dies, "crashed")])
def test_a_child_that_lies_or_dies_costs_nothing_but_time(
    work: Any, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "improve", work)
    found, _ = plan(contested())
    assert found.evidence["child"] == outcome
    assert found.value == 3
    assert found.bound == 6, "what is not confirmed is no bound"


def test_a_bound_of_the_solver_is_confirmed_by_another_process() -> None:
    found, _ = plan(contested())
    assert (found.value, found.bound) == (3, 3)
    assert "another process" in found.evidence["bound_by"]


def test_a_broken_plan_is_never_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "moves_of", lambda ask, nodes: 7)
    with pytest.raises(PlanBroken, match="moved"):
        plan(contested(), Effort(improves=False))

"""The solver: one decision, whole plans and their certificates, repair, blocks, checker, traces.

Baselines run in the same run: arrival-order first fit for the plans, planning anew for the
repair. `GPULEDGER_BENCH_ASKS` sets the size of the large plan (100000).
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np

from benchmarks.figures import SEED, Figure, main
from benchmarks.instances import gangs, philly, segments, synthetic
from solvers.placement.index import PlacementIndex, warm_up
from solvers.planning.attempts import Placement, best_placement
from solvers.planning.certificate import bound_of
from solvers.planning.checking import plan_faults
from solvers.planning.columns import Columns, columns_of
from solvers.planning.improving import Task, improve
from solvers.planning.instance import Instance
from solvers.planning.planner import Effort, plan, plan_hash, told
from solvers.planning.prices import Guide, guide_of
from solvers.planning.reading import read_instances
from solvers.planning.repair import repair
from tests.instances import broken, small

ASKS = int(os.environ.get("GPULEDGER_BENCH_ASKS", "100000"))
NODES = ASKS // 20
DATA = Path(os.environ.get("GPULEDGER_DATA", Path(__file__).parents[2] / "shared" / "data"))
IMPROVING_SECONDS = 60.0
G3_SECONDS = 20.0
DECISIONS = 4_000
FAULTS = 10_000
DAY = 24 * 60
NOT_BUILT = (
    "G1 real Slurm beside it, and shares",
    "G4 degraded GPU-hours with drawn durations; overflow halved by ejection chains",
    "G5 the openb traces with --fill, and the FGD rule",
    "G12 a month of simulated contention",
)


def measure() -> Iterator[Figure]:
    """Every goal that is built."""
    for what in NOT_BUILT:
        print(f"not measured: {what}", file=sys.stderr)
    warm_up()
    plan(synthetic(200, 20), Effort(improves=False))
    large = synthetic(ASKS, NODES)
    columns, guide, placement, figures = _whole_plan(large)
    yield from figures
    yield from _decisions(columns, placement)
    yield from _repair(columns, guide, placement)
    yield from _blocks()
    yield from _philly()
    yield from _same_plan()
    yield from _faults()
    yield from _adversarial()


def _whole_plan(large: Instance) -> tuple[Columns, Guide, Placement, list[Figure]]:
    """G2: prices, placement and certificate of the large plan, beside first fit by arrival."""
    begun = time.perf_counter()
    columns = columns_of(large)
    guide = guide_of(columns)
    placement = best_placement(columns, guide)
    found = told(columns, placement.places(), guide.bound, {})
    taken = time.perf_counter() - begun
    begun = time.perf_counter()
    assert bound_of(columns, guide.certificate) == guide.bound
    certified = time.perf_counter() - begun
    begun = time.perf_counter()
    assert plan_faults(columns.instance, found) == []
    checked = time.perf_counter() - begun
    arrival = Placement(columns)
    arrival.fill(np.random.default_rng(SEED).permutation(len(columns.value)))
    gap = 100 * (1 - placement.value() / guide.bound)
    gap_of_arrival = 100 * (1 - arrival.value() / guide.bound)
    size = f"{ASKS // 1000}k x {8 * NODES // 1000}k GPUs"
    return (
        columns,
        guide,
        placement,
        [
            Figure(f"G2 plan {size}", taken, "s", 10, None, is_most=True),
            Figure("G2 gap (raw: by arrival)", gap, "%", 0.25, gap_of_arrival, is_most=True),
            Figure("G2 certificate check", 1000 * certified, "ms", 5, None, is_most=True),
            Figure("G2 plan check", checked, "s", 0.2, None, is_most=True),
        ],
    )


def _decisions(columns: Columns, placement: Placement) -> Iterator[Figure]:
    """G1: one decision on exact seconds and GPUs, at all of the plan and at 1 % of it."""
    places = placement.places()
    p99s: dict[str, float] = {}
    for share in (0.01, 1.0):
        names = sorted(places)[: int(len(places) * share)]
        nodes = max(10, int(NODES * share))
        index = PlacementIndex(0)
        for _ in range(nodes):
            index.set_open(index.add_node(8, "H100", ()), is_open=True)
        chosen = {r: places[r] for r in names}
        found = told(columns, chosen, 1 << 60, {}, with_reasons=False)
        number = {node.id: at for at, node in enumerate(columns.instance.nodes)}
        for owner, placed in enumerate(found.accepted):
            length = 60 * int(columns.asks.duration[names[owner]])
            for node, gpu in placed.units():
                if number[node] < nodes:
                    start = 60 * placed.start
                    index.hold(number[node], gpu * 1000, 1000, start, start + length, owner)
        times: dict[str, list[float]] = {"yes": [], "no": []}
        dice, denied = Random(SEED), index.denied((), None, ())
        for _ in range(DECISIONS):
            start = dice.randrange(0, 28 * DAY) * 60 + dice.randrange(60)
            end = start + dice.choice([3600, 4 * 3600, 24 * 3600, 72 * 3600]) + dice.randrange(60)
            count = dice.choice([1, 2, 4, 8])
            begun = time.perf_counter_ns()
            if count == 8:
                got: object = index.find_nodes(dice.choice([1, 2]), start, end, denied, None)
            else:
                got = index.find_gpus(count, start, end, denied)
            times["yes" if got else "no"].append((time.perf_counter_ns() - begun) / 1000)
        for answer, some in times.items():
            if some:
                p99s[f"{answer} at {len(names)} live"] = float(np.percentile(some, 99))
    for answer, p99 in p99s.items():
        yield Figure(f"G1 decision p99, {answer}", p99, "us", 10, None, is_most=True)


def _repair(columns: Columns, guide: Guide, placement: Placement) -> Iterator[Figure]:
    """G4: 1 % of the nodes lost from day 10, beside planning anew."""
    places = placement.places()
    dice = np.random.default_rng(SEED)
    lost = np.sort(dice.choice(NODES, max(1, NODES // 100), replace=False))
    repair(placement, places, lost[:0], 10 * DAY)
    begun = time.perf_counter()
    found = repair(placement, places, lost, 10 * DAY)
    taken = 1000 * (time.perf_counter() - begun)
    begun = time.perf_counter()
    best_placement(columns, guide)
    anew = 1000 * (time.perf_counter() - begun)
    overflow = 100 * len(found.overflow) / max(1, len(found.affected))
    yield Figure("G4 repair (raw: anew)", taken, "ms", 100, anew, is_most=True)
    yield Figure(f"G4 overflow of {len(found.affected)} affected", overflow, "%")


def _improved(instance: Instance, seconds: float) -> tuple[float, float]:
    """Percent of the bound by the greedy levels, and after so many deterministic seconds more."""
    columns = columns_of(instance)
    guide = guide_of(columns)
    placement = best_placement(columns, guide)
    places = placement.places()
    for step in improve(Task(columns, places, guide.bound, seconds)):
        places = step.places
    value = int(columns.value[list(places)].sum())
    return 100 * placement.value() / guide.bound, 100 * value / guide.bound


def _blocks() -> Iterator[Figure]:
    """G3 and G6: gangs inside blocks, improved, beside the greedy levels alone."""
    begun = time.perf_counter()
    greedy, better = _improved(synthetic(ASKS, NODES, rack_nodes=16), G3_SECONDS)
    taken = time.perf_counter() - begun
    gaps = (100 - better, 100 - greedy)
    yield Figure("G3 gap, blocks of 16 (raw: greedy)", gaps[0], "%", 0.7, gaps[1], is_most=True)
    yield Figure("G3 time", taken, "s", 60, None, is_most=True)
    for instance, goal in (
        (gangs(600, 16, 16), 98.0),
        (gangs(2000, 50, 16), 99.0),
        (segments(600, 60), 97.0),
    ):
        begun = time.perf_counter()
        greedy, better = _improved(instance, IMPROVING_SECONDS)
        taken = time.perf_counter() - begun
        yield Figure(f"G6 {instance.name} (raw: greedy)", better, "% of bound", goal, greedy)
        yield Figure(f"G6 {instance.name}: time", taken, "s", 60, None, is_most=True)


def _philly() -> Iterator[Figure]:
    """G10: the Philly trace at an offered load of 1.3."""
    file = DATA / "philly" / "philly_jobs.csv"
    if not file.exists():
        print(f"not measured: G10, {file} is not there", file=sys.stderr)
        return
    instance = philly(file)
    begun = time.perf_counter()
    columns = columns_of(instance)
    guide = guide_of(columns)
    placement = best_placement(columns, guide)
    taken = time.perf_counter() - begun
    arrival = Placement(columns)
    arrival.fill(np.lexsort((columns.asks.release,)))
    share = 100 * placement.value() / guide.bound
    baseline = 100 * arrival.value() / guide.bound
    yield Figure("G10 Philly at 1.3 (raw: arrival)", share, "% of bound", 99.0, baseline)
    yield Figure("G10 time", taken, "s", 5, None, is_most=True)


def _same_plan() -> Iterator[Figure]:
    """G8: how many plans 20 replays with shuffled lists come to."""
    hashes = set()
    instance = gangs(30, 3, 4)
    dice = Random(SEED)
    for _ in range(20):
        nodes = tuple(dice.sample(instance.nodes, len(instance.nodes)))
        asks = tuple(dice.sample(instance.asks, len(instance.asks)))
        shuffled = Instance(instance.name, nodes, asks, {})
        hashes.add(plan_hash(plan(shuffled, Effort(deterministic_seconds=0.5))[0]))
    yield Figure("G8 different plans of 20 replays", len(hashes), "plans", 1, None, is_most=True)


def _faults() -> Iterator[Figure]:
    """G9: plans with one fault, and how many of them the checker catches."""
    dice = Random(SEED)
    sound = [(each, plan(each, Effort(improves=False))[0]) for each in map(small, range(100))]

    def wrong() -> Iterator[bool]:
        while True:
            instance, found = dice.choice(sound)
            faulty = broken(instance, found, dice)
            if faulty is not None and faulty != found:
                yield bool(plan_faults(instance, faulty))

    caught = sum(islice(wrong(), FAULTS))
    yield Figure(f"G9 faults caught of {FAULTS}", caught, "plans", FAULTS)


def _adversarial() -> Iterator[Figure]:
    """G11: instances with proven optima."""
    file = DATA / "adversarial" / "instances.json"
    if not file.exists():
        print(f"not measured: G11, {file} is not there", file=sys.stderr)
        return
    content = json.loads(file.read_text())
    right = 0
    for given, instance in zip(content, read_instances(content)[0], strict=True):
        found, _ = plan(instance)
        right += found.value == given["expect"]["value"] == found.bound
    yield Figure("G11 optima found and proven", right, "instances", len(content))


def figures() -> Sequence[Figure]:
    """All of them."""
    return list(measure())


if __name__ == "__main__":
    main(figures, __doc__ or "")

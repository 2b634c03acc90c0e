"""Ruin and rebuilding never loses anything, and equal racks make a tighter bound."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.instances import gangs, segments, synthetic
from solvers.planning.annealing import anneal, can_anneal
from solvers.planning.attempts import Placement, best_placement
from solvers.planning.certificate import bound_of
from solvers.planning.checking import plan_faults
from solvers.planning.columns import columns_of
from solvers.planning.exact import Search, search
from solvers.planning.improving import whole_of
from solvers.planning.instance import Instance
from solvers.planning.planner import told
from solvers.planning.prices import guide_of
from tests.instances import small


@pytest.mark.parametrize(
    "instance",
    [gangs(120, 4, 8), synthetic(600, 30, rack_nodes=6, load=1.3), synthetic(500, 20, load=1.4)],
    ids=lambda instance: instance.name,
)
def test_each_step_is_sound_and_worth_more(instance: Instance) -> None:
    columns = columns_of(instance)
    guide = guide_of(columns)
    arrival = Placement(columns)
    arrival.fill(np.arange(len(columns.value)))
    before = arrival.value()
    steps = 0
    for places in anneal(columns, arrival.places(), guide.bound, 1.0, 1):
        value = int(columns.value[list(places)].sum())
        assert value > before
        assert plan_faults(columns.instance, told(columns, places, guide.bound, {})) == []
        before = value
        steps += 1
    assert steps


def test_the_same_seed_gives_the_same_steps() -> None:
    columns = columns_of(gangs(120, 4, 8))
    guide = guide_of(columns)
    places = best_placement(columns, guide).places()
    runs = [list(anneal(columns, places, guide.bound, 0.5, 7)) for _ in range(2)]
    assert runs[0] == runs[1]


def test_quotas_hold_while_things_are_rebuilt() -> None:
    plain = synthetic(300, 12, load=1.5)
    tenants = sorted({ask.tenant for ask in plain.asks})
    instance = Instance("quotas", plain.nodes, plain.asks, dict.fromkeys(tenants, 24))
    columns = columns_of(instance)
    arrival = Placement(columns)
    arrival.fill(np.arange(len(columns.value)))
    for places in anneal(columns, arrival.places(), 1 << 60, 0.5, 1):
        assert plan_faults(columns.instance, told(columns, places, 1 << 60, {})) == []


def test_what_is_exclusive_or_has_a_home_is_left_to_the_other_levels() -> None:
    kinds = {can_anneal(columns_of(small(seed))) for seed in range(40)}
    assert kinds == {True, False}


def test_who_leaves_too_little_of_a_rack_for_anybody_counts_as_all_of_it() -> None:
    instance = segments(60, 6)
    columns = columns_of(instance)
    guide = guide_of(columns)
    placement = best_placement(columns, guide)
    assert set((columns.room - columns.size).tolist()) == {8}
    assert bound_of(columns, guide.certificate) == guide.bound
    assert placement.value() >= 0.99 * guide.bound


def test_the_tighter_bound_is_never_below_an_optimum() -> None:
    for seed in range(8):
        drawn = gangs(14, 2, 3, load=1.6, seed=seed)
        asks = tuple(replace(a, nodes=max(2, a.nodes)) for a in drawn.asks)
        columns = columns_of(replace(drawn, asks=asks))
        assert (columns.room > columns.size).any()
        exact = search(columns, whole_of(columns), {}, Search(5.0))
        assert exact.is_optimal
        best = int(columns.value[list(exact.places)].sum())
        assert best <= guide_of(columns).bound

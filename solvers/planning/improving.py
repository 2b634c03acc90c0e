"""Improving a placement: by CP-SAT as a whole where it is small, by ruin and rebuilding, by parts.

Runs in a child process. The present placement is never made worse; each better one is told at
once, so that a killed child loses nothing but the time since.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from solvers.planning.annealing import anneal, can_anneal
from solvers.planning.attempts import Places
from solvers.planning.columns import Columns
from solvers.planning.exact import PLACES_MAX, Found, Part, Search, places_of, search

PART_PLACES_MAX = 6_000
PART_NODES_MAX = 32
CANDIDATES_MAX = 80
"""Most reservations without a place that one part tries to admit."""
PART_SECONDS = 1.0
"""Deterministic seconds of one part."""
PARTS_MAX = 10_000
ANNEALED_SHARE = 0.8
"""Of the time, for ruining and rebuilding; CP-SAT by parts has the rest."""


@dataclass(frozen=True, slots=True)
class Task:
    """A placement to improve, and for how many deterministic seconds."""

    columns: Columns
    places: dict[int, tuple[int, tuple[int, ...]]]
    bound: int
    deterministic_seconds: float
    seed: int = 1
    is_second: bool = False
    """Whether to confirm an optimum in another configuration instead."""


@dataclass(frozen=True, slots=True)
class Step:
    """A better placement, or the last word: a bound if there is one."""

    places: dict[int, tuple[int, tuple[int, ...]]]
    bound: int | None = None
    evidence: dict[str, str] = field(default_factory=dict)


def whole_of(columns: Columns) -> Part:
    """Everything."""
    return Part(tuple(range(len(columns.value))), tuple(range(len(columns.fleet.gpus))))


def is_small(columns: Columns) -> bool:
    """Whether the instance is solved as one model."""
    return places_of(columns, whole_of(columns)) <= PLACES_MAX


def improve(task: Task) -> Iterator[Step]:
    """Better and better placements."""
    spent = 0.0
    if is_small(task.columns):
        how = Search(task.deterministic_seconds, task.seed, task.is_second)
        found = search(task.columns, whole_of(task.columns), task.places, how)
        bound, spent = found.bound, found.spent
        places = _better(task.columns, task.places, found, whole_of(task.columns))
        yield Step(places, bound, found.evidence)
        if found.is_optimal or task.is_second:
            return
    else:
        places = dict(task.places)
    if can_anneal(task.columns):
        seconds = ANNEALED_SHARE * task.deterministic_seconds
        for better in anneal(task.columns, places, task.bound, seconds, task.seed):
            places = better
            yield Step(places, None, {"annealed_seconds": f"{seconds:g}"})
        spent += seconds
    yield from _by_parts(task, places, spent)


def _by_parts(
    task: Task, places: dict[int, tuple[int, tuple[int, ...]]], spent: float
) -> Iterator[Step]:
    """Solve one part after another, chosen from the seed."""
    columns = task.columns
    dice = np.random.default_rng(task.seed)
    value = _value(columns, places)
    tried = better = 0
    while spent < task.deterministic_seconds and value < task.bound and tried < PARTS_MAX:
        part = _part(columns, places, dice)
        tried += 1
        if part is None:
            return
        found = search(columns, part, places, Search(PART_SECONDS, seed=tried))
        spent += max(found.spent, 0.01)
        after = _better(columns, places, found, part)
        if _value(columns, after) > value:
            better += 1
            value = _value(columns, after)
            evidence = {"parts": str(tried), "better": str(better)}
            yield Step(after, None, evidence)
        places = after


def _value(columns: Columns, places: Places) -> int:
    return int(columns.value[np.array(list(places), np.int64)].sum()) if places else 0


def _better(
    columns: Columns,
    places: dict[int, tuple[int, tuple[int, ...]]],
    found: Found,
    part: Part,
) -> dict[int, tuple[int, tuple[int, ...]]]:
    """The placement with a part replaced, unless that is worth less."""
    after = {r: put for r, put in places.items() if r not in set(part.asks)} | found.places
    return after if _value(columns, after) >= _value(columns, places) else places


def _part(columns: Columns, places: Places, dice: np.random.Generator) -> Part | None:
    """A reservation without a place, some nodes around it in time, and who else could move."""
    asks, fleet = columns.asks, columns.fleet
    out = np.array([r for r in range(len(columns.value)) if r not in places], np.int64)
    out = out[(asks.latest[out] >= asks.release[out]) & (columns.value[out] > 0)]
    if not len(out):
        return None
    weight = columns.value[out] / columns.value[out].sum()
    centre = int(dice.choice(out, p=weight))
    low = int(asks.release[centre])
    high = int(asks.latest[centre] + asks.duration[centre])
    suits = np.flatnonzero(fleet.allowed[asks.kind[centre]])
    if not len(suits):
        return None
    nodes = _some_nodes(columns, suits, centre, dice)
    inside = set(nodes.tolist())
    free = [
        r
        for r, (start, at) in places.items()
        if start < high and low < start + int(asks.duration[r]) and inside.issuperset(at)
    ]
    near = out[(asks.release[out] < high) & (low < asks.latest[out] + asks.duration[out])]
    near = near[near != centre]
    near = dice.permutation(near)[: CANDIDATES_MAX - 1]
    chosen = [*sorted(free), centre, *near.tolist()]
    per_node = max(1, PART_PLACES_MAX // max(1, len(nodes)))
    if len(chosen) > per_node:
        keep = dice.permutation(len(free))[: max(0, per_node - 1 - len(near))]
        chosen = [*(sorted(free)[i] for i in keep), centre, *near.tolist()]
    return Part(tuple(sorted(set(chosen))), tuple(sorted(nodes.tolist())))


def _some_nodes(
    columns: Columns,
    suits: np.ndarray[tuple[int], np.dtype[np.int64]],
    centre: int,
    dice: np.random.Generator,
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Two racks where racks matter, else nodes at random; enough of them for the centre."""
    fleet = columns.fleet
    wanted = max(1, int(columns.asks.nodes[centre]))
    most = max(PART_NODES_MAX, 2 * wanted)
    if columns.asks.one_rack.any() and len(fleet.rack_first) > 1:
        racks = dice.permutation(np.unique(fleet.rack[suits]))
        chosen = np.flatnonzero(np.isin(fleet.rack, racks[:2]))
        if len(chosen) >= wanted:
            return chosen
    picked: np.ndarray[tuple[int], np.dtype[np.int64]] = dice.permutation(suits)[:most]
    return picked

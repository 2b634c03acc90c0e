"""A CP-SAT model of a part of an instance: some reservations, some nodes, the rest as it is.

Each reservation may sit on every node that suits it; where all windows are fixed, what is in use
is a linear row at each start, else a cumulative over optional intervals. Counts suffice: whatever
fits by count on a node at every instant can be given GPUs of its own in the order of starts.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from solvers.planning.attempts import Places
from solvers.planning.columns import Columns

PLACES_MAX = 30_000
"""Most (reservation, node) pairs of one model."""
PAIRS_MAX = 400_000
"""Most pairs of reservations that exclude one another on a node."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a model decides: these reservations, on these nodes; all others stay."""

    asks: tuple[int, ...]
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """Under which limits and in which manner a model is solved."""

    deterministic_seconds: float
    seed: int = 1
    is_second: bool = False
    """Whether this is the second configuration, which confirms what the first has said."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to: places of its part, and what they can at most be worth."""

    places: dict[int, tuple[int, tuple[int, ...]]]
    is_optimal: bool
    bound: int
    evidence: dict[str, str]
    spent: float
    """Deterministic seconds."""


@dataclass(slots=True)
class _Model:
    columns: Columns
    part: Part
    cp: cp_model.CpModel = field(default_factory=cp_model.CpModel)
    present: dict[int, Any] = field(default_factory=dict)
    start: dict[int, Any] = field(default_factory=dict)
    on: dict[tuple[int, int], Any] = field(default_factory=dict)
    in_rack: dict[tuple[int, int], Any] = field(default_factory=dict)
    interval: dict[tuple[int, int], Any] = field(default_factory=dict)

    def amount(self, r: int, node: int) -> int:
        asks = self.columns.asks
        return int(asks.gpus[r] or self.columns.fleet.gpus[node])

    def window(self, r: int) -> tuple[int, int, int]:
        asks = self.columns.asks
        return int(asks.release[r]), int(asks.latest[r]), int(asks.duration[r])


def places_of(columns: Columns, part: Part) -> int:
    """How many (reservation, node) pairs a model of this part would have."""
    kinds = columns.asks.kind[list(part.asks)]
    per_kind = columns.fleet.allowed[:, list(part.nodes)].sum(axis=1)
    return int(per_kind[kinds].sum())


def search(columns: Columns, part: Part, present: Places, how: Search) -> Found:
    """The best places of a part that its limit allows, beginning with the present ones.

    Value first; then, that value kept, few moves. The same input gives the same answer.
    """
    model = _build(columns, part, present)
    worth = sum(int(columns.value[r]) * var for r, var in sorted(model.present.items()))
    model.cp.maximize(worth)
    _hint(model, present)
    solver = _solver(how)
    status = solver.solve(model.cp)
    evidence = {
        "status": solver.status_name(status),
        "model": hashlib.sha256(str(model.cp.proto).encode()).hexdigest(),
    }
    spent = float(solver.response_proto.deterministic_time)
    if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        return Found({}, is_optimal=False, bound=1 << 62, evidence=evidence, spent=spent)
    best, bound = round(solver.objective_value), round(solver.best_objective_bound)
    found = Found(_read(model, solver), status == cp_model.OPTIMAL, bound, evidence, spent)
    if how.is_second or not any(columns.asks.at_count[r] for r in part.asks):
        return found
    return _moved_least(model, worth, best, found, how)


def _moved_least(model: _Model, worth: Any, best: int, found: Found, how: Search) -> Found:  # noqa: ANN401 - an expression of the solver
    """The same value with the fewest moves, and of those the cheapest."""
    columns, asks = model.columns, model.columns.asks
    most = sum(columns.instance.asks[r].move_cost for r in model.part.asks) + 1
    terms = []
    for (r, node), var in sorted(model.on.items()):
        first = int(asks.at_first[r])
        home = asks.at_nodes[first : first + int(asks.at_count[r])]
        if len(home) and node not in home:
            cost = columns.instance.asks[r].move_cost
            terms.append((most * max(1, int(asks.nodes[r])) + cost) * var)
    model.cp.add(worth >= best)
    model.cp.minimize(sum(terms))
    _hint(model, found.places)
    solver = _solver(how)
    status = solver.solve(model.cp)
    spent = found.spent + float(solver.response_proto.deterministic_time)
    evidence = found.evidence | {"moves": solver.status_name(status)}
    if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        return Found(found.places, found.is_optimal, found.bound, evidence, spent)
    return Found(_read(model, solver), found.is_optimal, found.bound, evidence, spent)


def _solver(how: Search) -> cp_model.CpSolver:
    """One worker and deterministic time; the wall is kept by the process around it."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = how.seed
    solver.parameters.max_deterministic_time = how.deterministic_seconds
    if how.is_second:
        solver.parameters.cp_model_presolve = False
        solver.parameters.linearization_level = 0
    return solver


def _build(columns: Columns, part: Part, present: Places) -> _Model:
    model = _Model(columns, part)
    for r in part.asks:
        _add_ask(model, r)
    chosen = set(part.asks)
    others = {r: put for r, put in present.items() if r not in chosen}
    held: dict[int, list[tuple[int, int, int, int]]] = defaultdict(list)
    for r, (start, nodes) in others.items():
        for node in nodes:
            end = start + int(columns.asks.duration[r])
            held[node].append((start, end, model.amount(r, node), r))
    items: dict[int, list[int]] = defaultdict(list)
    for r, node in model.on:
        items[node].append(r)
    down: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for node, start, end in columns.down:
        down[node].append((start, end))
    for node, here in sorted(items.items()):
        limit = int(columns.fleet.gpus[node])
        fixed = [(start, end, gpus) for start, end, gpus, _ in held[node]]
        uses = [
            (r, model.on[r, node], model.interval[r, node], model.amount(r, node)) for r in here
        ]
        _within(model, uses, fixed, limit)
        for start, end in down[node]:
            _keep_off(model, here, node, start, end)
        _apart(model, here, node, held[node])
    _within_quota(model, others)
    _within_fleet(model)
    return model


def _add_ask(model: _Model, r: int) -> None:
    columns, asks = model.columns, model.columns.asks
    low, high, duration = model.window(r)
    present = model.present[r] = model.cp.new_bool_var(f"p{r}")
    suits = [n for n in model.part.nodes if columns.fleet.allowed[asks.kind[r], n]]
    suits = [n for n in suits if model.amount(r, n) <= int(columns.fleet.gpus[n])]
    if asks.started[r]:
        first = int(asks.at_first[r])
        home = set(asks.at_nodes[first : first + int(asks.at_count[r])].tolist())
        suits = [n for n in suits if n in home]
    if low > high:
        suits = []
    start = model.start[r] = model.cp.new_int_var(low, max(low, high), f"s{r}")
    for node in suits:
        here = model.on[r, node] = model.cp.new_bool_var(f"x{r},{node}")
        model.interval[r, node] = model.cp.new_optional_fixed_size_interval_var(
            start if high > low else low, duration, here, ""
        )
    wanted = max(1, int(asks.nodes[r]))
    model.cp.add(sum(model.on[r, node] for node in suits) == wanted * present)
    if asks.one_rack[r] and wanted > 1:
        racks = sorted({int(columns.fleet.rack[node]) for node in suits})
        for rack in racks:
            chosen = model.in_rack[r, rack] = model.cp.new_bool_var(f"y{r},{rack}")
            inside = [model.on[r, n] for n in suits if int(columns.fleet.rack[n]) == rack]
            model.cp.add(sum(inside) == wanted * chosen)
        model.cp.add(sum(model.in_rack[r, rack] for rack in racks) == present)


def _within(
    model: _Model,
    uses: Sequence[tuple[int, Any, Any, int]],
    fixed: list[tuple[int, int, int]],
    limit: int,
) -> None:
    """No more in use at once than the limit, by what moves and what is fixed."""
    windows = {r: model.window(r) for r, *_ in uses}
    if any(high > low for low, high, _ in windows.values()):
        intervals = [interval for _, _, interval, _ in uses]
        amounts = [amount for *_, amount in uses]
        for start, end, amount in fixed:
            intervals.append(model.cp.new_fixed_size_interval_var(start, end - start, ""))
            amounts.append(amount)
        if sum(amounts) > limit:
            model.cp.add_cumulative(intervals, amounts, limit)
        return
    starts = {low for low, _, _ in windows.values()} | {start for start, _, _ in fixed}
    for at in sorted(starts):
        active = [u for u in uses if windows[u[0]][0] <= at < windows[u[0]][0] + windows[u[0]][2]]
        held = sum(amount for start, end, amount in fixed if start <= at < end)
        if active and held + sum(amount for *_, amount in active) > limit:
            variables = [var for _, var, _, _ in active]
            amounts = [amount for *_, amount in active]
            row = cp_model.LinearExpr.weighted_sum(variables, amounts)
            model.cp.add(row <= max(0, limit - held))


def _keep_off(model: _Model, here: Iterable[int], node: int, start: int, end: int) -> None:
    """Nobody on a node while it is down."""
    for r in here:
        low, high, duration = model.window(r)
        if low == high and low < end and start < low + duration:
            model.cp.add(model.on[r, node] == 0)
        elif low < high and low < end and start < high + duration:
            away = model.cp.new_fixed_size_interval_var(start, end - start, "")
            model.cp.add_no_overlap([model.interval[r, node], away])


def _apart(
    model: _Model, here: list[int], node: int, held: list[tuple[int, int, int, int]]
) -> None:
    """Exclusive holders have a node to their tenant alone."""
    asks = model.columns.asks
    for start, end, _, other in held:
        strangers = [r for r in here if asks.tenant[r] != asks.tenant[other]]
        alone = [r for r in strangers if asks.exclusive[r] or asks.exclusive[other]]
        _keep_off(model, alone, node, start, end)
    for at, r in enumerate(here):
        low, high, duration = model.window(r)
        for other in here[at + 1 :]:
            apart = asks.exclusive[r] or asks.exclusive[other]
            if not apart or asks.tenant[r] == asks.tenant[other]:
                continue
            low_2, high_2, duration_2 = model.window(other)
            if low >= high_2 + duration_2 or low_2 >= high + duration:
                continue
            if low == high and low_2 == high_2:
                model.cp.add_at_most_one(model.on[r, node], model.on[other, node])
            else:
                both = [model.interval[r, node], model.interval[other, node]]
                model.cp.add_no_overlap(both)


def _within_quota(model: _Model, others: Places) -> None:
    """Tenants with a quota use no more than it at once, what is fixed elsewhere included."""
    asks = model.columns.asks
    for at, limit in enumerate(model.columns.quota.tolist()):
        row = at + len(model.columns.fleet.gpus)
        fixed = [
            (start, start + int(asks.duration[r]), sum(model.amount(r, n) for n in nodes))
            for r, (start, nodes) in others.items()
            if asks.quota_row[r] == row
        ]
        uses = [
            (r, var, model.interval[r, node], model.amount(r, node))
            for (r, node), var in model.on.items()
            if asks.quota_row[r] == row
        ]
        if uses:
            _within(model, uses, fixed, limit)


def _within_fleet(model: _Model) -> None:
    """What follows from all nodes together; it adds nothing, and tightens the bound."""
    columns = model.columns
    chosen = [r for r in model.part.asks if model.window(r)[0] == model.window(r)[1]]
    limit = int(columns.fleet.gpus[list(model.part.nodes)].sum())
    lows = columns.asks.release[chosen]
    ends = lows + columns.asks.duration[chosen]
    for at in np.unique(lows).tolist():
        active = [chosen[i] for i in np.flatnonzero((lows <= at) & (at < ends))]
        sizes = [int(columns.size[r]) for r in active]
        if sum(sizes) > limit:
            variables = [model.present[r] for r in active]
            model.cp.add(cp_model.LinearExpr.weighted_sum(variables, sizes) <= limit)


def _hint(model: _Model, present: Places) -> None:
    """A hint for every variable."""
    model.cp.clear_hints()
    rack = model.columns.fleet.rack
    for r, var in model.present.items():
        start, _ = present.get(r, (model.window(r)[0], ()))
        model.cp.add_hint(var, r in present)
        model.cp.add_hint(model.start[r], start)
    for (r, node), var in model.on.items():
        model.cp.add_hint(var, r in present and node in present[r][1])
    for (r, at), var in model.in_rack.items():
        model.cp.add_hint(var, r in present and int(rack[present[r][1][0]]) == at)


def _read(model: _Model, solver: cp_model.CpSolver) -> dict[int, tuple[int, tuple[int, ...]]]:
    found: dict[int, tuple[int, tuple[int, ...]]] = {}
    nodes: dict[int, list[int]] = defaultdict(list)
    for (r, node), var in sorted(model.on.items()):
        if solver.boolean_value(var):
            nodes[r].append(node)
    for r, var in sorted(model.present.items()):
        if solver.boolean_value(var):
            found[r] = (solver.value(model.start[r]), tuple(nodes[r]))
    return found

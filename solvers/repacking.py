"""Making room for waiting requests by moving what may move: a CP-SAT model, GPU by GPU.

Each part of a reservation (a whole node, or GPUs on one node) is an optional interval on every
GPU that it could sit on; the intervals of one GPU never overlap. Admit GPUs class by class, then
whoever waits longest, then move little, then take the lowest names, so that equal problems give
equal plans.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ortools.sat.python import cp_model

from domain.ids import NodeId, ReservationId
from domain.sizes import ReservationClass
from domain.snapshot import PlanAnswer, PlanAsk, PlanNode, PlanProblem
from domain.timespan import MICROSECONDS
from domain.units import MILLI_PER_GPU, Piece

DETERMINISTIC_SECONDS = 20.0
WALL_SECONDS_MAX = 30.0
PLACES_MAX = 20_000
"""Most (part, GPU) pairs in one model; more is not tried."""
MOVE_COST = 10_000
CLASSES = (ReservationClass.GUARANTEED, ReservationClass.OVERFLOW, ReservationClass.BORROWED)
"""In the order in which they are admitted."""
WEIGHT_MAX = 1 << 61
"""Of all that an objective can sum up to."""
RENUMBER_COST = 600
"""Of another GPU on the node where a reservation sits anyway: above any rank, below a move."""
RANK_MAX = 500


@dataclass(slots=True)
class _Part:
    """GPUs of one ask on one node, somewhere."""

    ask: PlanAsk
    gpus: int
    whole: bool
    home: str | None
    on_node: dict[str, Any] = field(default_factory=dict)
    on_gpu: dict[tuple[str, int], Any] = field(default_factory=dict)


def search(problem: PlanProblem) -> PlanAnswer:
    """The best plan that the first configuration finds; nothing that it refuses is proven yet."""
    return _search(problem, is_second=False)


def search_again(problem: PlanProblem) -> PlanAnswer:
    """The same by a second configuration: another seed, without presolve and linear relaxation."""
    return _search(problem, is_second=True)


def _search(problem: PlanProblem, *, is_second: bool) -> PlanAnswer:
    parts = [part for ask in (*problem.movable, *problem.waiting) for part in _parts(ask)]
    places = sum(len(list(_places(part, problem.nodes))) for part in parts)
    if places > PLACES_MAX or any(ask.parts.share_milli for ask in problem.waiting):
        why = {"status": "too-large", "places": str(places), "limit": str(PLACES_MAX)}
        return PlanAnswer(refused=tuple(ask.id for ask in problem.waiting), evidence=why)
    model = cp_model.CpModel()
    admit = {ask.id: model.new_bool_var(f"admit {ask.id}") for ask in problem.waiting}
    _place(model, problem, parts, admit)
    _objective(model, problem, parts, admit)
    solver = _solver(seed=2 if is_second else 1)
    if is_second:
        solver.parameters.cp_model_presolve = False
        solver.parameters.linearization_level = 0
    status = solver.solve(model)
    evidence = {
        "solver": f"ortools {_version()}",
        "status": solver.status_name(status),
        "seed": "2" if is_second else "1",
        "limit": f"{DETERMINISTIC_SECONDS} deterministic seconds",
        "model": hashlib.sha256(str(model.proto).encode()).hexdigest(),
        "places": str(places),
    }
    if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        return PlanAnswer(refused=tuple(admit), evidence=evidence)
    return _read(problem, parts, admit, solver, evidence)


def repack(problem: PlanProblem) -> PlanAnswer:
    """Solve in this process, and confirm a refusal; the same problem gives the same answer."""
    answer = search(problem)
    return confirmed(problem, answer, search_again(problem)) if is_final(answer) else answer


def is_final(answer: PlanAnswer) -> bool:
    """Whether an answer refuses somebody for good, and so needs to be confirmed."""
    return bool(answer.refused) and answer.evidence.get("status") == "OPTIMAL"


def confirmed(problem: PlanProblem, answer: PlanAnswer, again: PlanAnswer) -> PlanAnswer:
    """An answer whose refusals are proven if a second, optimal one admits no better.

    A refusal is final, and this release of the solver is known to be wrong at times: both
    answers were checked, and it is what they admit that is compared, not what they say of it.
    """
    status = again.evidence.get("status", again.evidence.get("outcome", "nothing"))
    same = status == "OPTIMAL" and admitted_worth(problem, again) == admitted_worth(problem, answer)
    told = {"confirmed": f"{status}, {'the same' if same else 'another'}"}
    return replace(answer, is_proven=same, evidence={**answer.evidence, **told})


def admitted_worth(problem: PlanProblem, answer: PlanAnswer) -> tuple[int, ...]:
    """The GPUs that an answer admits of each class, in the order of classes."""
    return tuple(
        sum(
            _gpus(ask)
            for ask in problem.waiting
            if ask.klass is klass and ask.id in answer.admitted
        )
        for klass in CLASSES
    )


def _solver(seed: int) -> cp_model.CpSolver:
    """One worker and deterministic time: the wall is only a safety net."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = DETERMINISTIC_SECONDS
    solver.parameters.max_time_in_seconds = WALL_SECONDS_MAX
    return solver


def _version() -> str:
    import ortools

    return str(ortools.__version__)


def _parts(ask: PlanAsk) -> Iterator[_Part]:
    """The parts of an ask, each with the node where it is now."""
    at: dict[str, int] = {}
    for piece in ask.at:
        at[piece.node_id] = at.get(piece.node_id, 0) + piece.width_milli // MILLI_PER_GPU
    homes = sorted(at.items(), key=lambda item: (-item[1], item[0]))
    wanted = [(ask.parts.node_gpus, True)] * ask.parts.nodes
    wanted += [(ask.parts.gpus, False)] if ask.parts.gpus else []
    for number, (gpus, whole) in enumerate(wanted):
        home = homes[number][0] if number < len(homes) and homes[number][1] == gpus else None
        yield _Part(ask, gpus, whole, home)


def _places(part: _Part, nodes: tuple[PlanNode, ...]) -> Iterator[tuple[PlanNode, int]]:
    """The GPUs on which a part could sit."""
    shape = part.ask.shape
    for node in nodes:
        fits = node.gpus == part.gpus if part.whole else len(node.open_slots) >= part.gpus
        fits = fits and len(node.open_slots) >= part.gpus
        fits = fits and (not shape.models or node.model in shape.models)
        if fits and shape.labels.items() <= node.labels.items():
            for slot in node.open_slots:
                yield node, slot


def _place(
    model: cp_model.CpModel,
    problem: PlanProblem,
    parts: list[_Part],
    admit: dict[ReservationId, Any],
) -> None:
    """Every part on one node and on as many of its GPUs as it asks for; no GPU held twice."""
    on_gpu: dict[tuple[str, int], list[Any]] = {}
    for hold in problem.fixed:
        for slot in hold.piece.slots:
            start, size = hold.start // MICROSECONDS, (hold.end - hold.start) // MICROSECONDS
            interval = model.new_fixed_size_interval_var(start, size, "fixed")
            on_gpu.setdefault((hold.piece.node_id, slot), []).append(interval)
    for number, part in enumerate(parts):
        start = part.ask.start // MICROSECONDS
        size = (part.ask.end - part.ask.start + problem.gap) // MICROSECONDS
        for node, slot in _places(part, problem.nodes):
            key = (node.id, slot)
            if node.id not in part.on_node:
                part.on_node[node.id] = model.new_bool_var(f"{number} on {node.id}")
            here = part.on_gpu[key] = model.new_bool_var(f"{number} on {node.id}/{slot}")
            interval = model.new_optional_fixed_size_interval_var(start, size, here, "held")
            on_gpu.setdefault(key, []).append(interval)
        present = admit.get(part.ask.id, 1)
        model.add(sum(part.on_node.values()) == present)
        for node_id, chosen in part.on_node.items():
            here = [var for (where, _), var in part.on_gpu.items() if where == node_id]
            model.add(sum(here) == part.gpus * chosen)
    for intervals in on_gpu.values():
        model.add_no_overlap(intervals)
    _apart(model, parts)
    _together(model, problem, parts, admit)


def _apart(model: cp_model.CpModel, parts: list[_Part]) -> None:
    """The parts of one ask sit on different nodes."""
    by_ask: dict[ReservationId, list[_Part]] = {}
    for part in parts:
        by_ask.setdefault(part.ask.id, []).append(part)
    for siblings in by_ask.values():
        nodes = {node_id for part in siblings for node_id in part.on_node}
        for node_id in sorted(nodes):
            model.add_at_most_one(p.on_node[node_id] for p in siblings if node_id in p.on_node)


def _together(
    model: cp_model.CpModel,
    problem: PlanProblem,
    parts: list[_Part],
    admit: dict[ReservationId, Any],
) -> None:
    """The parts of an ask that names a level sit in one group of it."""
    levels = {node.id: dict(node.levels) for node in problem.nodes}
    for ask in (*problem.movable, *problem.waiting):
        level = ask.shape.same_level
        if level is None:
            continue
        groups: dict[str, Any] = {}
        for part in (part for part in parts if part.ask.id == ask.id):
            for node_id, here in part.on_node.items():
                group = levels[NodeId(node_id)].get(level)
                if group is None:
                    model.add(here == 0)
                    continue
                if group not in groups:
                    groups[group] = model.new_bool_var(f"{ask.id} in {group}")
                model.add_implication(here, groups[group])
        model.add(sum(groups.values()) == admit.get(ask.id, 1))


def _objective(
    model: cp_model.CpModel,
    problem: PlanProblem,
    parts: list[_Part],
    admit: dict[ReservationId, Any],
) -> None:
    """Admit GPUs class by class, then by place in the queue; then stay; then low."""
    rank: dict[str, int] = {
        node.id: at for at, node in enumerate(sorted(problem.nodes, key=lambda n: n.id))
    }
    cost = [
        (0 if node_id == part.home or part.home is None else MOVE_COST) * var
        + min(rank[node_id], RANK_MAX) * var
        for part in parts
        for node_id, var in part.on_node.items()
    ]
    for part in parts:
        kept = {(piece.node_id, slot) for piece in part.ask.at for slot in piece.slots}
        cost += [
            RENUMBER_COST * var
            for key, var in part.on_gpu.items()
            if key[0] == part.home and key not in kept
        ]
    weight = _weights(problem, parts)
    gain = sum(weight[ask.id] * admit[ask.id] for ask in problem.waiting)
    model.maximize(gain - sum(cost))


def _weights(problem: PlanProblem, parts: list[_Part]) -> dict[ReservationId, int]:
    """What admitting each is worth: above any cost of moving, and each level above those below it.

    Where the numbers would grow too large, the place in the queue is left out.
    """
    moving = sum(MOVE_COST + RANK_MAX + RENUMBER_COST * part.gpus for part in parts) + 1
    count = len(problem.waiting)
    for first in (moving, 1):
        weight = {ask.id: first * (count - ask.place) for ask in problem.waiting}
        if first == 1:
            weight = dict.fromkeys(weight, 0)
        below = max(moving, sum(weight.values()) + first)
        for klass in reversed(CLASSES):
            mine = [ask for ask in problem.waiting if ask.klass is klass]
            for ask in mine:
                weight[ask.id] += below * _gpus(ask)
            below *= sum(_gpus(ask) for ask in mine) + 1
        if sum(weight.values()) + moving < WEIGHT_MAX:
            return weight
    raise OverflowError("more waits than one plan can weigh")


def _gpus(ask: PlanAsk) -> int:
    return ask.parts.nodes * ask.parts.node_gpus + ask.parts.gpus


def _read(
    problem: PlanProblem,
    parts: list[_Part],
    admit: dict[ReservationId, Any],
    solver: cp_model.CpSolver,
    evidence: dict[str, str],
) -> PlanAnswer:
    """The answer of a solution; who keeps its node keeps its GPUs where that is possible."""
    found: dict[ReservationId, list[Piece]] = {}
    for part in parts:
        for (node_id, slot), var in sorted(part.on_gpu.items()):
            if solver.value(var):
                pieces = found.setdefault(part.ask.id, [])
                pieces.append(_gpu(problem, node_id, slot))
    evidence["bound"] = str(round(solver.best_objective_bound))
    evidence["objective"] = str(round(solver.objective_value))
    moves = {
        ask.id: tuple(_joined(found[ask.id]))
        for ask in problem.movable
        if tuple(_joined(found[ask.id])) != tuple(_joined(list(ask.at)))
    }
    admitted = {
        ask.id: tuple(_joined(found[ask.id]))
        for ask in problem.waiting
        if solver.value(admit[ask.id])
    }
    refused = tuple(ask.id for ask in problem.waiting if ask.id not in admitted)
    return PlanAnswer(moves, admitted, refused, evidence=evidence)


def _gpu(problem: PlanProblem, node_id: str, slot: int) -> Piece:
    node = next(node for node in problem.nodes if node.id == node_id)
    return Piece(node.id, slot * MILLI_PER_GPU, MILLI_PER_GPU)


def _joined(pieces: list[Piece]) -> Iterator[Piece]:
    """Neighbouring GPUs of a node as one piece."""
    run: Piece | None = None
    for piece in sorted(pieces):
        if run and run.node_id == piece.node_id and run.end_milli == piece.first_milli:
            run = Piece(run.node_id, run.first_milli, run.width_milli + piece.width_milli)
        else:
            if run:
                yield run
            run = piece
    if run:
        yield run

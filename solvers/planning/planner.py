"""From an instance to a checked plan with its certificate.

Flow for bound and prices, a sweep and fills for a placement, CP-SAT in a child for what is left
of the gap. Whatever comes back from a child is checked before it replaces what was there.
"""

import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass, replace

from solvers.child import MEMORY_BYTES_MAX, steps_in_child
from solvers.planning.attempts import Places, best_placement
from solvers.planning.certificate import Certificate
from solvers.planning.checking import plan_faults
from solvers.planning.columns import Columns, columns_of
from solvers.planning.improving import Step, Task, improve
from solvers.planning.instance import Instance, InstancePlan, Placed, Why, moves_of
from solvers.planning.prices import guide_of
from solvers.planning.reasons import reasons_of

DETERMINISTIC_SECONDS = 10.0
"""Of CP-SAT for one instance, unless said."""
WALL_SECONDS_MAX = 60.0
"""Of the child for one instance; it is reached only where deterministic seconds run slowly."""


class PlanBroken(RuntimeError):
    """The checker found a fault in a plan of ours: nothing of it is offered."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to try; `improves` False is the greedy levels alone."""

    improves: bool = True
    deterministic_seconds: float = DETERMINISTIC_SECONDS
    wall_seconds: float = WALL_SECONDS_MAX
    memory_bytes: int = MEMORY_BYTES_MAX
    seed: int = 1


def plan(instance: Instance, effort: Effort | None = None) -> tuple[InstancePlan, Certificate]:
    """A sound plan, and prices that prove a bound on it.

    The same instance in any order of its lists gives the same plan, unless the wall ends it.
    """
    effort = effort or Effort()
    columns = columns_of(instance)
    guide = guide_of(columns)
    places: dict[int, tuple[int, tuple[int, ...]]] = {}
    if len(columns.fleet.gpus) and len(columns.value):
        places = best_placement(columns, guide).places()
    evidence = {"seed": str(effort.seed), "price_bound": str(guide.bound), "bound_by": "prices"}
    evidence["greedy_value"] = str(_value(columns, places))
    bound = guide.bound
    if effort.improves and (_value(columns, places) < bound or _could_stay(columns, places)):
        places, bound = _improved(columns, places, guide.bound, effort, evidence)
    found = told(columns, places, bound, evidence)
    faults = plan_faults(instance, found)
    if faults:
        raise PlanBroken(faults[0])
    return found, guide.certificate


def _value(columns: Columns, places: Places) -> int:
    return int(columns.value[list(places)].sum()) if places else 0


def _could_stay(columns: Columns, places: Places) -> bool:
    """Whether somebody was moved who perhaps need not be."""
    nodes, asks = columns.instance.nodes, columns.instance.asks
    return any(moves_of(asks[r], (nodes[n].id for n in at)) for r, (_, at) in places.items())


def _improved(
    columns: Columns,
    places: dict[int, tuple[int, tuple[int, ...]]],
    bound: int,
    effort: Effort,
    evidence: dict[str, str],
) -> tuple[dict[int, tuple[int, tuple[int, ...]]], int]:
    """What a child makes of a placement, checked; and a bound that a second child confirms."""
    task = Task(columns, places, bound, effort.deterministic_seconds, effort.seed)
    outcome, steps = steps_in_child(
        improve, task, wall_seconds=effort.wall_seconds, memory_bytes=effort.memory_bytes
    )
    evidence |= {"child": outcome, "deterministic_seconds": f"{effort.deterministic_seconds:g}"}
    proven: int | None = None
    for step in steps:
        if not isinstance(step, Step) or _is_broken(columns, step.places):
            evidence["child"] = "broken"
            break
        if _value(columns, step.places) >= _value(columns, places):
            places = dict(step.places)
        evidence |= step.evidence
        proven = step.bound if step.bound is not None else proven
    value = _value(columns, places)
    if proven is None or proven >= bound or value < proven or evidence["child"] == "broken":
        return places, bound
    again = replace(task, places=places, seed=effort.seed + 1, is_second=True)
    outcome, steps = steps_in_child(
        improve, again, wall_seconds=effort.wall_seconds, memory_bytes=effort.memory_bytes
    )
    second = [step.bound for step in steps if isinstance(step, Step) and step.bound is not None]
    if outcome == "ended" and second and second[0] == value == proven:
        evidence["bound_by"] = "CP-SAT, confirmed by a second configuration in another process"
        return places, value
    evidence["unconfirmed_bound"] = str(proven)
    return places, bound


def _is_broken(columns: Columns, places: Places) -> bool:
    """Whether the checker finds a fault in places that a child sent."""
    try:
        found = told(columns, places, 1 << 62, {}, with_reasons=False)
        return bool(plan_faults(columns.instance, found))
    except Exception:  # noqa: BLE001 - a broken child may send anything
        return True


def told(
    columns: Columns,
    places: Places,
    bound: int,
    evidence: dict[str, str],
    *,
    with_reasons: bool = True,
) -> InstancePlan:
    """Places as a plan: GPUs given out in the order of starts, and a reason for each refusal."""
    asks, nodes = columns.instance.asks, columns.instance.nodes
    accepted = _with_gpus(columns, places)
    out = [r for r in range(len(asks)) if r not in places]
    why = reasons_of(columns, places) if with_reasons else dict.fromkeys(out, Why.CAPACITY)
    moves = sum(moves_of(asks[r], (nodes[n].id for n in at)) for r, (_, at) in places.items())
    refused = tuple((asks[r].id, why[r]) for r in out)
    name = columns.instance.name
    return InstancePlan(
        name, _value(columns, places), accepted, refused, moves, bound, dict(evidence)
    )


def _with_gpus(columns: Columns, places: Places) -> tuple[Placed, ...]:
    """In the order of starts, whoever comes takes the lowest GPUs that are free."""
    asks, nodes, gpus = columns.asks, columns.instance.nodes, columns.fleet.gpus.tolist()
    durations, sizes = asks.duration.tolist(), asks.gpus.tolist()
    free = [(1 << count) - 1 for count in gpus]
    running: dict[int, list[tuple[int, int]]] = defaultdict(list)
    pieces: dict[int, tuple[tuple[str, int], ...]] = {}
    for r in sorted(places, key=lambda r: (places[r][0], r)):
        start, at = places[r]
        held: list[tuple[str, int]] = []
        for node in at:
            for end, bits in running[node]:
                if end <= start:
                    free[node] |= bits
            running[node] = [each for each in running[node] if each[0] > start]
            bits = free[node] if not sizes[r] else _lowest_bits(free[node], sizes[r])
            free[node] &= ~bits
            running[node].append((start + durations[r], bits))
            held.append((nodes[node].id, bits))
        pieces[r] = tuple(held)
    return tuple(
        Placed(columns.instance.asks[r].id, places[r][0], pieces[r]) for r in sorted(places)
    )


def _lowest_bits(free: int, count: int) -> int:
    found = 0
    for _ in range(count):
        lowest = free & -free
        found |= lowest
        free &= ~lowest
    return found


def plan_hash(found: InstancePlan) -> str:
    """SHA-256 of a plan without its evidence: equal plans have equal hashes."""
    accepted = [[each.id, each.start, each.pieces] for each in found.accepted]
    content = [found.name, found.value, found.moves, found.bound, accepted, found.refused]
    told_as = json.dumps(content, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(told_as.encode()).hexdigest()


__all__ = ["Effort", "PlanBroken", "plan", "plan_hash", "told"]

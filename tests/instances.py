"""Small instances of the planning problem from seeds, a search that tries everything, and faults."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from random import Random

from solvers.planning.instance import Instance, InstanceAsk, InstanceNode, InstancePlan, Placed


def node(name: str, gpus: int = 8, **other: object) -> InstanceNode:
    return InstanceNode(name, gpus=gpus, **({"rack": "k0", "model": "H100"} | other))  # type: ignore[arg-type]


def ask(name: str, start: int = 0, end: int = 10, **other: object) -> InstanceAsk:
    given = {"tenant": "t0", "gpus": 0, "nodes": 0, "duration": end - start, "value": 1} | other
    return InstanceAsk(name, release=start, deadline=end, **given)  # type: ignore[arg-type]


def small(seed: int) -> Instance:
    """A few nodes and reservations with a bit of everything."""
    dice = Random(seed)
    racks = dice.choice([1, 2])
    nodes = []
    for number in range(dice.randint(1, 3)):
        down = ((2, 3),) if dice.random() < 0.2 else ()
        name, rack = f"n{number}", f"k{number % racks}"
        model, gpus = dice.choice(["H100", "A100"]), dice.choice([2, 2, 3])
        nodes.append(InstanceNode(name, rack, model, gpus, down))
    asks = [_small_ask(dice, number, nodes) for number in range(dice.randint(1, 5))]
    quota = {"a": dice.randint(1, 4)} if dice.random() < 0.3 else {}
    return Instance(f"small {seed}", tuple(nodes), tuple(asks), quota, dice.random() < 0.5)


def _small_ask(dice: Random, number: int, nodes: list[InstanceNode]) -> InstanceAsk:
    start, duration = dice.randint(0, 4), dice.randint(1, 3)
    whole = dice.choice([0, 0, 1, 2])
    at: tuple[str, ...] = ()
    if dice.random() < 0.3 and (whole or 1) <= len(nodes):
        at = tuple(n.id for n in dice.sample(nodes, whole or 1))
    return InstanceAsk(
        f"r{number}",
        dice.choice("ab"),
        gpus=0 if whole else dice.choice([1, 1, 2, 3]),
        nodes=whole,
        release=start,
        deadline=start + duration + dice.choice([0, 0, 1, 2]),
        duration=duration,
        value=dice.randint(1, 9),
        exclusive=dice.random() < 0.2,
        one_rack=dice.random() < 0.4,
        models=dice.choice([None, None, ("H100",), ("A100", "H100")]),
        at=at,
        started=bool(at) and dice.random() < 0.3,
    )


def best_of_all(instance: Instance) -> tuple[int, int]:
    """The most value that any plan has, and the fewest moves with it, by trying everything."""
    best = (0, 0)

    def go(number: int, put: tuple[tuple[InstanceAsk, int, tuple[InstanceNode, ...]], ...]) -> None:
        nonlocal best
        if number == len(instance.asks):
            value = sum(each.value for each, _, _ in put)
            moves = sum(len({n.id for n in at} - set(each.at)) for each, _, at in put if each.at)
            best = max(best, (value, -moves))
            return
        left = sum(each.value for each in instance.asks[number:])
        if sum(each.value for each, _, _ in put) + left < best[0]:
            return
        for start, at in _ways(instance, instance.asks[number]):
            more = (*put, (instance.asks[number], start, at))
            if _holds(instance, more):
                go(number + 1, more)
        go(number + 1, put)

    go(0, ())
    return best[0], -best[1]


def _ways(instance: Instance, each: InstanceAsk) -> Iterator[tuple[int, tuple[InstanceNode, ...]]]:
    last = each.release if each.started else each.deadline - each.duration
    for start in range(each.release, last + 1):
        for at in combinations(instance.nodes, each.nodes or 1):
            if each.started and {n.id for n in at} != set(each.at):
                continue
            if each.one_rack and len({n.rack for n in at}) > 1:
                continue
            if all(each.models is None or n.model in each.models for n in at):
                yield start, at


def _holds(
    instance: Instance, put: tuple[tuple[InstanceAsk, int, tuple[InstanceNode, ...]], ...]
) -> bool:
    """At each instant: nobody on a node that is down, counts and quota kept, no stranger."""
    for instant in range(12):
        running = [(a, at) for a, s, at in put if s <= instant < s + a.duration]
        for machine in instance.nodes:
            here = [a for a, at in running if machine in at]
            used = sum(a.gpus or machine.gpus for a in here)
            is_down = any(low <= instant < high for low, high in machine.down)
            if used > (0 if is_down else machine.gpus):
                return False
            if any(a.exclusive for a in here) and len({a.tenant for a in here}) > 1:
                return False
        for tenant, limit in instance.quota.items():
            used = sum(sum(a.gpus or n.gpus for n in at) for a, at in running if a.tenant == tenant)
            if used > limit:
                return False
    return True


def broken(instance: Instance, plan: InstancePlan, dice: Random) -> InstancePlan | None:
    """The plan with one fault put into it, or None where this fault has no place."""
    asks = {each.id: each for each in instance.asks}
    accepted = list(plan.accepted)
    at = dice.randrange(len(accepted)) if accepted else 0
    kind = dice.randrange(10)
    if kind == 0:
        return replace(plan, value=plan.value + dice.choice([-1, 1]))
    if kind == 1:
        return replace(plan, moves=plan.moves + 1)
    if kind == 2:
        return replace(plan, bound=plan.value - 1)
    if not accepted:
        return None
    placed = accepted[at]
    others = [n for n in instance.nodes if n.id not in {name for name, _ in placed.pieces}]
    if kind == 3:
        accepted[at] = replace(placed, start=asks[placed.id].release - 1)
    elif kind == 4:
        accepted[at] = replace(placed, pieces=placed.pieces[1:])
    elif kind == 5:
        (name, bits), *rest = placed.pieces
        accepted[at] = replace(placed, pieces=((name, bits & (bits - 1)), *rest))
    elif kind == 6:
        (name, bits), *rest = placed.pieces
        accepted[at] = replace(placed, pieces=((name, bits | 1 << 40), *rest))
    elif kind == 7:
        accepted.append(placed)
    elif kind == 8:
        del accepted[at]
    else:
        return _on_anothers(instance, plan, placed, at, others, dice)
    return replace(plan, accepted=tuple(accepted))


def _on_anothers(
    instance: Instance,
    plan: InstancePlan,
    placed: Placed,
    at: int,
    others: list[InstanceNode],
    dice: Random,
) -> InstancePlan | None:
    """One holder is put onto the GPUs of another that runs at the same time."""
    asks = {each.id: each for each in instance.asks}
    end = placed.start + asks[placed.id].duration
    beside = [
        each
        for each in plan.accepted
        if each.id != placed.id
        and each.start < end
        and placed.start < each.start + asks[each.id].duration
    ]
    if not beside:
        return None
    accepted = list(plan.accepted)
    accepted[at] = replace(placed, pieces=dice.choice(beside).pieces)
    return replace(plan, accepted=tuple(accepted))

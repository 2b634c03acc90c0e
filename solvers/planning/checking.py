"""The checker that distrusts plans: it reads an instance and a plan, and names each fault.

It shares no code with any search: it walks through the plan in the order of time, GPU by GPU.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from solvers.planning.instance import Instance, InstanceAsk, InstanceNode, InstancePlan, Placed

FAULTS_MAX = 100
"""More faults than these are not told."""


def plan_faults(instance: Instance, plan: InstancePlan) -> list[str]:
    """What is wrong with a plan; nothing when it is sound and adds up."""
    found: list[str] = []
    for fault in _faults(instance, plan):
        found.append(fault)
        if len(found) == FAULTS_MAX:
            break
    return found


def _faults(instance: Instance, plan: InstancePlan) -> Iterator[str]:
    asks = {ask.id: ask for ask in instance.asks}
    nodes = {node.id: node for node in instance.nodes}
    yield from _answers(asks, plan)
    value = moves = 0
    sound: list[Placed] = []
    for placed in plan.accepted:
        ask = asks.get(placed.id)
        if ask is None:
            continue
        here = list(_misplaced(ask, placed, nodes))
        yield from here
        value += ask.value
        if ask.at:
            moves += len({node for node, _ in placed.pieces} - set(ask.at))
        if not here:
            sound.append(placed)
    yield from _collisions(asks, sound)
    yield from _strangers(asks, sound)
    yield from _over_quota(instance, asks, nodes, sound)
    if plan.value != value:
        yield f"the value is {value}, not {plan.value}"
    if plan.moves != moves:
        yield f"{moves} nodes are moved to, not {plan.moves}"
    if plan.bound < value:
        yield f"the bound {plan.bound} is below the value {value}"


def _answers(asks: dict[str, InstanceAsk], plan: InstancePlan) -> Iterator[str]:
    """Everyone is answered once."""
    seen: set[str] = set()
    for name in [placed.id for placed in plan.accepted] + [name for name, _ in plan.refused]:
        if name not in asks:
            yield f"{name} is no reservation of this instance"
        if name in seen:
            yield f"{name} is answered twice"
        seen.add(name)
    for name in asks:
        if name not in seen:
            yield f"{name} is not answered"


def _misplaced(ask: InstanceAsk, placed: Placed, nodes: dict[str, InstanceNode]) -> Iterator[str]:
    """A wrong time, or wrong nodes, of one reservation."""
    start, end = placed.start, placed.start + ask.duration
    if start < ask.release or end > ask.deadline:
        yield f"{ask.id} runs [{start}, {end}), outside of its window"
    names = [node for node, _ in placed.pieces]
    if len(set(names)) != len(names) or len(names) != (ask.nodes or 1):
        yield f"{ask.id} sits on {len(names)} nodes"
    if ask.started and (set(names) != set(ask.at) or start != ask.release):
        yield f"{ask.id} has started and may not move"
    racks = set()
    for name, bits in placed.pieces:
        node = nodes.get(name)
        if node is None:
            yield f"{ask.id} sits on {name}, which is no node"
            continue
        racks.add(node.rack)
        if bits < 0 or bits >> node.gpus:
            yield f"{ask.id} holds a GPU that {name} has not"
        if bits.bit_count() != (node.gpus if ask.nodes else ask.gpus) or not bits:
            yield f"{ask.id} holds {bits.bit_count()} GPUs of {name}"
        if ask.models is not None and node.model not in ask.models:
            yield f"{ask.id} sits on model {node.model}"
        for low, high in node.down:
            if low < end and start < high:
                yield f"{ask.id} sits on {name} while it is down"
    if ask.one_rack and len(racks) > 1:
        yield f"{ask.id} is spread over racks {', '.join(sorted(racks))}"


def _collisions(asks: dict[str, InstanceAsk], accepted: Iterable[Placed]) -> Iterator[str]:
    """A GPU that is taken before its last holder has left."""
    on_node: dict[str, list[tuple[int, int, int, str]]] = defaultdict(list)
    for placed in accepted:
        end = placed.start + asks[placed.id].duration
        for node, bits in placed.pieces:
            on_node[node].append((placed.start, end, bits, placed.id))
    for node, spans in on_node.items():
        spans.sort()
        running: list[tuple[int, int, str]] = []
        for start, end, bits, name in spans:
            running = [each for each in running if each[0] > start]
            for _, other_bits, other in running:
                if bits & other_bits:
                    yield f"{name} and {other} hold the same GPU of {node} at {start}"
            running.append((end, bits, name))


def _strangers(asks: dict[str, InstanceAsk], accepted: list[Placed]) -> Iterator[str]:
    """Someone beside an exclusive holder of another tenant."""
    if not any(ask.exclusive for ask in asks.values()):
        return
    on_node: dict[str, list[tuple[int, int, InstanceAsk]]] = defaultdict(list)
    for placed in accepted:
        ask = asks[placed.id]
        for node, _ in placed.pieces:
            on_node[node].append((placed.start, placed.start + ask.duration, ask))
    for node, spans in on_node.items():
        spans.sort(key=lambda span: span[0])
        running: list[tuple[int, InstanceAsk]] = []
        for start, end, ask in spans:
            running = [each for each in running if each[0] > start]
            for _, other in running:
                if other.tenant != ask.tenant and (other.exclusive or ask.exclusive):
                    yield f"{ask.id} and {other.id} of another tenant share {node} at {start}"
            running.append((end, ask))


def _over_quota(
    instance: Instance,
    asks: dict[str, InstanceAsk],
    nodes: dict[str, InstanceNode],
    accepted: Iterable[Placed],
) -> Iterator[str]:
    """A tenant with more GPUs at once than its quota."""
    edges: dict[str, list[tuple[int, int]]] = {tenant: [] for tenant in instance.quota}
    for placed in accepted:
        ask = asks[placed.id]
        if ask.tenant in edges:
            size = sum(bits.bit_count() for _, bits in placed.pieces)
            edges[ask.tenant] += [(placed.start, size), (placed.start + ask.duration, -size)]
    for tenant, changes in edges.items():
        in_use = 0
        for at, change in sorted(changes):
            in_use += change
            if in_use > instance.quota[tenant]:
                yield f"tenant {tenant} uses {in_use} GPUs at {at}, above its quota"

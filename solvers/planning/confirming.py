"""Refusals, distrusted: each is looked at again against the plan, by arithmetic of its own.

A reservation that was refused must not fit as it is, and must fit once the rule is lifted that is
named as the reason, either beside the plan or in an empty fleet. Fixed windows only: where a
start may vary nothing is confirmed, and it is counted.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from solvers.planning.instance import Instance, InstanceAsk, InstanceNode, InstancePlan, Why

CELLS_MAX = 48_000_000
"""Nodes times instants that are looked at together."""
FREE, SEVERAL = -1, -2

Cells = NDArray[np.int16]


@dataclass(slots=True)
class Room:
    """For one refusal, how many nodes would do under each set of rules, and the most in a rack."""

    as_it_is: list[int] = field(default_factory=lambda: [0, 0])
    if_shared: list[int] = field(default_factory=lambda: [0, 0])
    if_never_down: list[int] = field(default_factory=lambda: [0, 0])
    if_empty: list[int] = field(default_factory=lambda: [0, 0])
    if_empty_and_never_down: list[int] = field(default_factory=lambda: [0, 0])
    of_any_model: list[int] = field(default_factory=lambda: [0, 0])


@dataclass(frozen=True, slots=True)
class Confirmed:
    """How many refusals hold, by reason; what is wrong with others; how many were left out."""

    held: dict[str, int]
    faults: tuple[str, ...]
    not_looked_at: int


def confirm_refusals(instance: Instance, plan: InstancePlan) -> Confirmed:
    """Look at every refusal of a plan whose window is fixed."""
    asks = {ask.id: ask for ask in instance.asks}
    fixed = [(asks[name], why) for name, why in plan.refused if not asks[name].started]
    looked = [
        (a, why) for a, why in fixed if why is Why.WINDOW or a.deadline - a.duration == a.release
    ]
    rooms = {ask.id: Room() for ask, _ in looked}
    names = {tenant: at for at, tenant in enumerate(sorted({a.tenant for a in instance.asks}))}
    for nodes in _chunks(instance, len(_instants(instance, plan))):
        board = _Board(instance, plan, nodes, names)
        for ask, why in looked:
            if why is not Why.WINDOW:
                board.look(ask, rooms[ask.id])
    used = _Usage(instance, plan)
    faults: list[str] = []
    held: Counter[str] = Counter()
    for ask, why in looked:
        if _holds(ask, why, rooms[ask.id], within_quota=used.allows(ask)):
            held[why.value] += 1
        else:
            faults.append(f"{ask.id} is refused for {why.value}, which does not hold")
    return Confirmed(dict(sorted(held.items())), tuple(faults), len(plan.refused) - len(looked))


def _holds(ask: InstanceAsk, why: Why, room: Room, *, within_quota: bool) -> bool:
    """Whether it does not fit as it is, and would without the rule that is named."""

    def fits(count: list[int], *, one_rack: bool = ask.one_rack) -> bool:
        return count[1 if one_rack else 0] >= max(1, ask.nodes)

    if why is Why.WINDOW:
        return ask.release + ask.duration > ask.deadline
    if fits(room.as_it_is) and within_quota:
        return False
    match why:
        case Why.CAPACITY:
            return True
        case Why.QUOTA:
            return not within_quota
        case Why.TOPOLOGY:
            return fits(room.as_it_is, one_rack=False) or fits(room.if_empty, one_rack=False)
        case Why.ISOLATION:
            return fits(room.if_shared)
        case Why.MAINTENANCE:
            return fits(room.if_never_down) or fits(room.if_empty_and_never_down)
        case Why.MODEL:
            return fits(room.of_any_model) and not fits(room.if_empty)


def _instants(instance: Instance, plan: InstancePlan) -> NDArray[np.int64]:
    """When anything begins or ends."""
    length = {ask.id: ask.duration for ask in instance.asks}
    edges = {each.start for each in plan.accepted}
    edges |= {each.start + length[each.id] for each in plan.accepted}
    edges |= {edge for node in instance.nodes for span in node.down for edge in span}
    return np.array(sorted(edges | {-(1 << 50)}), np.int64)


def _chunks(instance: Instance, instants: int) -> Iterator[list[InstanceNode]]:
    """Whole racks at a time, as many as fit; racks are never cut."""
    nodes: list[InstanceNode] = []
    for node in sorted(instance.nodes, key=lambda n: (n.rack, n.id)):
        if nodes and node.rack != nodes[-1].rack and len(nodes) * instants > CELLS_MAX:
            yield nodes
            nodes = []
        nodes.append(node)
    if nodes:
        yield nodes


class _Board:
    """What is in use of some nodes at every instant, whose it is, and when they are down."""

    def __init__(
        self,
        instance: Instance,
        plan: InstancePlan,
        nodes: list[InstanceNode],
        names: dict[str, int],
    ) -> None:
        self.at = _instants(instance, plan)
        self.names = names
        self.gpus = np.array([node.gpus for node in nodes])
        self.model = np.array([node.model for node in nodes], dtype=object)
        racks = {rack: n for n, rack in enumerate(dict.fromkeys(node.rack for node in nodes))}
        self.rack = np.array([racks[node.rack] for node in nodes])
        shape = (len(nodes), len(self.at))
        self.used: Cells = np.zeros(shape, np.int16)
        self.down = np.zeros(shape, np.bool_)
        alone = any(ask.exclusive for ask in instance.asks)
        self.owner: Cells = np.full(shape if alone else (0, 0), FREE, np.int16)
        self.shut = np.zeros(shape if alone else (0, 0), np.bool_)
        row = {node.id: n for n, node in enumerate(nodes)}
        for n, node in enumerate(nodes):
            for start, end in node.down:
                self.down[n, self._span(start, end)] = True
        asks = {ask.id: ask for ask in instance.asks}
        for placed in plan.accepted:
            ask = asks[placed.id]
            span = self._span(placed.start, placed.start + ask.duration)
            for name, bits in placed.pieces:
                if name in row:
                    self._hold(row[name], span, bits.bit_count(), ask)

    def _span(self, start: int, end: int) -> slice:
        """The instants that speak for a span: the last one before it, and those inside."""
        first = int(np.searchsorted(self.at, start, side="right")) - 1
        return slice(first, int(np.searchsorted(self.at, end)))

    def _hold(self, n: int, span: slice, gpus: int, ask: InstanceAsk) -> None:
        self.used[n, span] += gpus
        if len(self.owner):
            mine, whose = self.names[ask.tenant], self.owner[n, span]
            whose[(whose != FREE) & (whose != mine)] = SEVERAL
            whose[whose == FREE] = mine
            if ask.exclusive:
                self.shut[n, span] = True

    def look(self, ask: InstanceAsk, room: Room) -> None:
        """Count the nodes that would do under each set of rules."""
        span = self._span(ask.release, ask.release + ask.duration)
        wanted = self.gpus if ask.nodes else np.full(len(self.gpus), ask.gpus)
        large = (self.gpus >= wanted) & (self.gpus > 0)
        right = large if ask.models is None else large & np.isin(self.model, list(ask.models))
        enough = self.used[:, span].max(axis=1) + wanted <= self.gpus
        up = ~self.down[:, span].any(axis=1)
        alone = np.ones(len(self.gpus), np.bool_)
        if len(self.owner):
            strange = (self.owner[:, span] != FREE) & (
                self.owner[:, span] != self.names[ask.tenant]
            )
            if not ask.exclusive:
                strange &= self.shut[:, span]
            alone = ~strange.any(axis=1)
        for count, ok in (
            (room.as_it_is, right & enough & up & alone),
            (room.if_shared, right & enough & up),
            (room.if_never_down, right & enough & alone),
            (room.if_empty, right & up),
            (room.if_empty_and_never_down, right),
            (room.of_any_model, large & up),
        ):
            count[0] += int(ok.sum())
            count[1] = max(count[1], int(np.bincount(self.rack[ok]).max(initial=0)))


class _Usage:
    """What each tenant with a quota has in use."""

    def __init__(self, instance: Instance, plan: InstancePlan) -> None:
        self.quota = instance.quota
        self.gpus = {node.id: node.gpus for node in instance.nodes}
        asks = {ask.id: ask for ask in instance.asks}
        self.spans: dict[str, list[tuple[int, int, int]]] = {}
        for placed in plan.accepted:
            ask = asks[placed.id]
            if ask.tenant in self.quota:
                size = sum(bits.bit_count() for _, bits in placed.pieces)
                span = (placed.start, placed.start + ask.duration, size)
                self.spans.setdefault(ask.tenant, []).append(span)

    def allows(self, ask: InstanceAsk) -> bool:
        """Whether the quota has room throughout a fixed window."""
        if ask.tenant not in self.quota:
            return True
        size = ask.gpus or ask.nodes * min(self.gpus.values(), default=0)
        start, end = ask.release, ask.release + ask.duration
        inside = [s for s in self.spans.get(ask.tenant, ()) if s[0] < end and start < s[1]]
        edges = {start, *(s[0] for s in inside if s[0] > start)}
        most = max(sum(s[2] for s in inside if s[0] <= at < s[1]) for at in edges)
        return most + size <= self.quota[ask.tenant]

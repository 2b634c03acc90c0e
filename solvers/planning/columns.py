"""An instance as arrays: nodes in the order of rack and id, reservations in the order of ids.

The order makes equal instances equal, however their lists were shuffled.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from solvers.planning.instance import Instance, InstanceAsk, InstanceNode
from solvers.planning.placing import Asks, Fleet
from solvers.planning.profiles import MIXED, Ints, Rows, grown, hold, make_room, make_rows


@dataclass(frozen=True, slots=True)
class Columns:
    """The arrays, and the sorted instance that they stand for."""

    instance: Instance
    asks: Asks
    fleet: Fleet
    value: Ints
    size: Ints
    """The fewest GPUs that each can take, wherever it sits."""
    room: Ints
    """The same, and of a rack that nobody fits into beside it, all of it."""
    down: tuple[tuple[int, int, int], ...]
    """(node, from, until)."""
    quota: Ints
    """The limits of the rows behind the nodes."""

    def rows(self) -> Rows:
        """Nothing placed: only the spans in which nodes are down."""
        asks = self.asks
        begin = int(asks.release.min(initial=0))
        end = 1 + int(np.maximum(asks.latest, asks.release).max(initial=begin))
        limits = np.concatenate([self.fleet.gpus, self.quota])
        shared = not asks.exclusive.any()
        rows = make_rows(limits, len(self.fleet.gpus), (begin, end), shared=shared)
        for node, start, end in self.down:
            while not make_room(rows, node):
                rows = grown(rows)
            hold(rows, node, start, end, int(self.fleet.gpus[node]), MIXED, exclusive=False)
        return rows


def canonical(instance: Instance) -> Instance:
    """The same instance with everything in one order."""
    return replace(
        instance,
        nodes=tuple(sorted(instance.nodes, key=lambda node: (node.rack, node.id))),
        asks=tuple(sorted(instance.asks, key=lambda ask: ask.id)),
    )


def columns_of(instance: Instance) -> Columns:
    """Arrays of an instance, which is sorted first."""
    sorted_one = canonical(instance)
    nodes, asks = sorted_one.nodes, sorted_one.asks
    number = {node.id: at for at, node in enumerate(nodes)}
    fleet, kinds = _fleet(nodes, asks)
    tenants = {name: at for at, name in enumerate(sorted({ask.tenant for ask in asks}))}
    limited = sorted(tenant for tenant in instance.quota if tenant in tenants)
    quota_row = {tenant: len(nodes) + at for at, tenant in enumerate(limited)}
    at_nodes = [number[node] for ask in asks for node in sorted(ask.at)]
    at_count = _ints(len(ask.at) for ask in asks)
    kind = _ints(kinds[ask.models] for ask in asks)
    columns = Asks(
        gpus=_ints(ask.gpus for ask in asks),
        nodes=_ints(ask.nodes for ask in asks),
        release=_ints(ask.release for ask in asks),
        latest=_ints(ask.latest for ask in asks),
        duration=_ints(ask.duration for ask in asks),
        tenant=_ints(tenants[ask.tenant] for ask in asks),
        exclusive=_ints(int(ask.exclusive) for ask in asks),
        one_rack=_ints(int(ask.one_rack) for ask in asks),
        kind=kind,
        quota_row=_ints(quota_row.get(ask.tenant, -1) for ask in asks),
        at_first=np.cumsum(at_count) - at_count,
        at_count=at_count,
        at_nodes=_ints([*at_nodes, 0]),
        started=_ints(int(ask.started) for ask in asks),
    )
    smallest = np.zeros(max(1, len(kinds)), np.int64)
    for at in kinds.values():
        some = fleet.gpus[fleet.allowed[at]]
        smallest[at] = some.min() if len(some) else 0
    size = np.where(columns.nodes > 0, columns.nodes * smallest[kind], columns.gpus)
    return Columns(
        sorted_one,
        columns,
        fleet,
        value=_ints(ask.value for ask in asks),
        size=size.astype(np.int64),
        room=_room(sorted_one, columns, fleet, size.astype(np.int64)),
        down=tuple((number[n.id], start, end) for n in nodes for start, end in n.down),
        quota=_ints(instance.quota[tenant] for tenant in limited),
    )


def _room(instance: Instance, asks: Asks, fleet: Fleet, size: Ints) -> Ints:
    """What each takes out of everybody's reach.

    Where all racks are equal and every reservation lies in one, whoever leaves less of a rack
    than the smallest reservation needs has it alone, and counts as all of it.
    """
    per_rack = np.bincount(fleet.rack, weights=fleet.gpus).astype(np.int64)
    inside = (asks.nodes <= 1) | (asks.one_rack > 0)
    is_even = len(per_rack) > 1 and len(size) > 0 and bool((per_rack == per_rack[0]).all())
    is_open = bool(fleet.allowed.all()) and not any(node.down for node in instance.nodes)
    if not (is_even and is_open and inside.all() and not instance.quota):
        return size
    whole = int(per_rack[0])
    least = min(int(size.min()), whole // 2)
    found: Ints = np.where((size > whole - least) & (size <= whole), whole, size)
    return found


def _fleet(
    nodes: tuple[InstanceNode, ...], asks: tuple[InstanceAsk, ...]
) -> tuple[Fleet, dict[tuple[str, ...] | None, int]]:
    kinds: dict[tuple[str, ...] | None, int] = {}
    for ask in asks:
        kinds.setdefault(ask.models, len(kinds))
    racks = sorted({node.rack for node in nodes})
    rack = {name: at for at, name in enumerate(racks)}
    node_rack = _ints(rack[node.rack] for node in nodes)
    gpus = _ints(node.gpus for node in nodes)
    allowed = np.zeros((max(1, len(kinds)), len(nodes)), np.bool_)
    models = np.array([node.model for node in nodes], dtype=object)
    for wanted, at in kinds.items():
        some = set(wanted or ())
        fits = [wanted is None or model in some for model in models]
        allowed[at] = np.array(fits, np.bool_) & (gpus > 0)
    first = np.searchsorted(node_rack, np.arange(len(racks)))
    end = np.searchsorted(node_rack, np.arange(len(racks)), side="right")
    return Fleet(gpus, node_rack, first.astype(np.int64), end.astype(np.int64), allowed), kinds


def _ints(values: Iterable[int]) -> Ints:
    return np.array(list(values), np.int64)

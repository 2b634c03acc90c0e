"""Why each refused reservation has no place: which single rule, were it lifted, would let it in."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from solvers.planning.attempts import Places, placement_of
from solvers.planning.columns import Columns
from solvers.planning.instance import Why
from solvers.planning.placing import probe
from solvers.planning.profiles import Ints, Rows


def reasons_of(columns: Columns, places: Places) -> dict[int, Why]:
    """A reason for each reservation without a place, by its number."""
    refused = np.array([r for r in range(len(columns.value)) if r not in places], np.int64)
    found = dict.fromkeys(refused.tolist(), Why.CAPACITY)
    short = columns.asks.latest[refused] < columns.asks.release[refused]
    found |= dict.fromkeys(refused[short].tolist(), Why.WINDOW)
    rules = list(_lifted(columns))
    if not rules:
        return found
    ends = np.array([s + int(columns.asks.duration[r]) for r, (s, _) in places.items()], np.int64)
    downs = np.array([end for _, _, end in columns.down], np.int64)
    instants = np.unique(np.concatenate([ends, downs]))
    left = refused[~short]
    empty = columns.rows()
    alone = _fits(columns, empty, left, instants)
    for why, changed in rules:
        rows = empty if why is not Why.MAINTENANCE else changed.rows()
        _tell(found, left[~alone], why, changed, rows, instants)
    left = left[alone]
    if len(left):
        full = placement_of(columns, places).rows
        for why, changed in rules:
            if why is Why.MODEL:
                continue
            rows = full
            if why is Why.ISOLATION:
                rows = full._replace(shut=np.zeros_like(full.shut))
            if why is Why.MAINTENANCE:
                rows = placement_of(changed, places).rows
            _tell(found, left, why, changed, rows, instants)
    return found


def _lifted(columns: Columns) -> Iterator[tuple[Why, Columns]]:
    """The same instance without one of its rules, for each rule that it has."""
    asks, fleet = columns.asks, columns.fleet
    none = np.zeros_like(asks.gpus)
    if len(columns.quota):
        yield Why.QUOTA, replace(columns, asks=asks._replace(quota_row=none - 1))
    if asks.exclusive.any():
        yield Why.ISOLATION, replace(columns, asks=asks._replace(exclusive=none))
    if asks.one_rack.any():
        yield Why.TOPOLOGY, replace(columns, asks=asks._replace(one_rack=none))
    if not fleet.allowed.all():
        any_model = fleet._replace(allowed=np.broadcast_to(fleet.gpus > 0, fleet.allowed.shape))
        yield Why.MODEL, replace(columns, fleet=any_model)
    if columns.down:
        yield Why.MAINTENANCE, replace(columns, down=())


def _tell(
    found: dict[int, Why], order: Ints, why: Why, columns: Columns, rows: Rows, instants: Ints
) -> None:
    """Note a reason for those that have none yet and fit once its rule is lifted."""
    unsaid = np.array([r for r in order.tolist() if found[r] is Why.CAPACITY], np.int64)
    for r in unsaid[_fits(columns, rows, unsaid, instants)].tolist():
        found[r] = why


def _fits(
    columns: Columns, rows: Rows, order: Ints, instants: Ints
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    found = np.zeros(len(order), np.bool_)
    if len(order) and len(columns.fleet.gpus):
        allowed = np.ascontiguousarray(columns.fleet.allowed)
        probe(columns.asks, columns.fleet._replace(allowed=allowed), rows, order, instants, found)
    return found

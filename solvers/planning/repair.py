"""After nodes are lost: new nodes for exactly what was on them, and nothing else moves.

The rows of the plan stand; the lost nodes are blocked from now on, and every reservation that
sat on one of them is offered as many nodes, or GPUs, as it lost there, for the rest of its time.
"""

from dataclasses import dataclass

import numpy as np

from solvers.planning.attempts import Placement, Places
from solvers.planning.profiles import Ints


@dataclass(frozen=True, slots=True)
class Repair:
    """Who lost something, the nodes that stand in for it, and who is short of them."""

    affected: Ints
    replaced: dict[int, tuple[int, ...]]
    """The numbers of the new nodes, by the number of the reservation."""
    overflow: tuple[int, ...]
    """Those for which there is no room: they overflow, or run degraded."""


def repair(placement: Placement, places: Places, lost: Ints, since: int) -> Repair:
    """Replacements from `since` on; the placement's rows then hold them too.

    A gang that must lie in one rack is offered nodes of the rack in which it sits.
    """
    columns, asks = placement.columns, placement.columns.asks
    gone = set(lost.tolist())
    missing: dict[int, int] = {}
    for r, (start, nodes) in places.items():
        if start + int(asks.duration[r]) > since:
            count = sum(node in gone for node in nodes)
            if count:
                missing[r] = count
    affected = np.array(sorted(missing), np.int64)
    counts = np.array([missing[r] for r in sorted(missing)], np.int64)
    kinds = [columns.fleet.allowed[asks.kind[r]] for r in affected.tolist()]
    allowed = np.array(kinds, np.bool_).reshape(len(affected), len(columns.fleet.gpus))
    allowed[:, lost] = False
    for row, r in enumerate(affected.tolist()):
        at = list(places[r][1])
        allowed[row, at] = False
        if asks.one_rack[r]:
            racks = {int(columns.fleet.rack[n]) for n in at}
            allowed[row] &= np.isin(columns.fleet.rack, list(racks))
    starts = np.maximum(np.array([places[r][0] for r in affected.tolist()], np.int64), since)
    ends = np.array([places[r][0] + int(asks.duration[r]) for r in affected.tolist()], np.int64)
    zero = np.zeros(len(affected), np.int64)
    tails = asks._replace(
        gpus=asks.gpus[affected],
        nodes=np.where(asks.nodes[affected] > 0, counts, 0),
        release=starts,
        latest=starts,
        duration=ends - starts,
        tenant=asks.tenant[affected],
        exclusive=asks.exclusive[affected],
        one_rack=asks.one_rack[affected],
        kind=np.arange(len(affected)),
        quota_row=zero - 1,
        at_first=zero,
        at_count=zero,
        started=zero,
    )
    worth = columns.value[affected] / np.maximum(columns.size[affected], 1)
    order = np.lexsort((affected, -columns.size[affected], -worth / asks.duration[affected]))
    found = placement.with_asks(tails, columns.fleet._replace(allowed=allowed))
    found.fill(order)
    replaced = {int(affected[row]): nodes for row, (_, nodes) in found.places().items()}
    return Repair(affected, replaced, tuple(r for r in affected.tolist() if r not in replaced))

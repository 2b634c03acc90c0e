"""The checks behind a report, by ways of their own: a sweep for overlaps, a sum for the books."""

from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]


def double_bookings(rows: Iterable[Row]) -> int:
    """How often a thousandth of a GPU has two holders: a sweep over each GPU's spans.

    Rows are those of `export assignments`; nothing of the ledger's own code is used.
    """
    by_gpu: dict[tuple[str, int], list[tuple[str, int, int, int]]] = {}
    for row in rows:
        place = (row["node_id"], row["gpu_index"])
        low, high = row["first_milli"], row["first_milli"] + row["width_milli"]
        by_gpu.setdefault(place, []).append((row["start"], 1, low, high))
        by_gpu[place].append((row["end"], 0, low, high))
    found = 0
    for edges in by_gpu.values():
        edges.sort()
        held: list[tuple[int, int]] = []
        for _, begins, low, high in edges:
            if not begins:
                held.remove((low, high))
                continue
            found += sum(1 for other in held if low < other[1] and other[0] < high)
            held.append((low, high))
    return found


def books_balance(usage: Iterable[Row], capacity: Iterable[Row]) -> bool:
    """Whether the states of each pool-hour sum to its capacity, to the GPU-microsecond."""
    sums: dict[tuple[str, int], int] = {}
    for row in usage:
        key = (row["pool_id"], row["hour"])
        sums[key] = sums.get(key, 0) + int(row["gpu_microseconds"])
    wanted = {(row["pool_id"], row["hour"]): int(row["gpu_microseconds"]) for row in capacity}
    return sums == wanted

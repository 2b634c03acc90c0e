"""What changes of holdings mean for the exclusion cells: one more of a cell, or one less."""

from collections.abc import Iterable, Iterator

from domain.changes import CellFreed, CellTaken, Change
from domain.journal import Cell


def cell_steps(changes: Iterable[Change]) -> Iterator[tuple[Cell, int]]:
    """Each cell that is taken (+1) or given up (-1), in order.

    What is past stays in the record: its cell is not given up.
    """
    for change in changes:
        match change:
            case CellTaken():
                step = 1
            case CellFreed(is_past=False):
                step = -1
            case _:
                continue
        first = change.base_milli + change.piece.first_milli
        yield Cell(first, first + change.piece.width_milli, change.start, change.end), step

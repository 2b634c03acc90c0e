"""What every read model is: a pure fold over recorded facts into tables."""

from collections.abc import Iterable
from typing import Protocol

from domain.record import Recorded
from projections.table import Table


class Projection(Protocol):
    """A fold with a name and a version; another version is built beside the old one."""

    name: str
    version: int
    tables: tuple[Table, ...]

    def apply(self, recorded: Recorded) -> None:
        """Fold one fact. It acts on nothing but its own tables."""
        ...

    def settle(self) -> None:
        """Bring the tables up to what was folded, before they are drained."""
        ...


def state_hash(projection: Projection) -> bytes:
    """One value over all rows of a projection."""
    total = sum(table.hash for table in projection.tables)
    return (total % (1 << 256)).to_bytes(32, "big")


def fold(projection: Projection, log: Iterable[Recorded]) -> None:
    """Fold a whole log in memory."""
    for recorded in log:
        projection.apply(recorded)
    projection.settle()
    for table in projection.tables:
        table.drain()

"""The port of charges that are told to others: rows of closed periods, in one order for ever."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from domain.messages import ClosedCharge


@dataclass(frozen=True, slots=True, order=True)
class ChargePlace:
    """Where a row stands: the position of the close in the log, and its number in the period."""

    closed_seq: int
    number: int


BEFORE_ALL = ChargePlace(0, 0)


class ClosedCharges(Protocol):
    """Rows of closed periods, as they were proven when they were kept."""

    def after(self, place: ChargePlace, limit: int) -> Sequence[ClosedCharge]:
        """The rows behind a place, in order, so many at most."""
        ...

    def at(self, place: ChargePlace) -> ClosedCharge | None:
        """The row at a place; None when there is none."""
        ...

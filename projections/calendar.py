"""The calendar: who is entitled to which run of a node, and when; one row per piece and span."""

from typing import NamedTuple

from domain.facts.reservation import ReservationEnded
from domain.record import Recorded
from domain.units import Piece
from projections.holdings import Held, Holdings
from projections.table import Row, Table


class CalendarRow(NamedTuple):
    """One piece of one reservation over one span. Instants are microseconds since 1970 UTC."""

    reservation_id: str
    node_id: str
    first_milli: int
    width_milli: int
    start: int
    end: int
    tenant_id: str
    pool_id: str
    klass: str
    state: str


class Calendar:
    """Every span that was ever held, as it was finally held."""

    name = "calendar"
    version = 1

    def __init__(self) -> None:
        """Begin empty."""
        self.table = Table("calendar", CalendarRow, 5)
        self.tables: tuple[Table, ...] = (self.table,)
        self._holdings = Holdings()
        self._keys: dict[str, set[Row]] = {}

    def apply(self, recorded: Recorded) -> None:
        """Let a reservation's rows follow its fact."""
        held = self._holdings.follow(recorded)
        if held is None:
            return
        had = self._keys.get(held.reservation_id, set())
        rows = [_row(held, *piece) for piece in held.pieces]
        has = {row[:5] for row in rows}
        for key in had - has:
            self.table.remove(key)
        for row in rows:
            self.table.put(row)
        self._keys[held.reservation_id] = has
        if isinstance(recorded.fact, ReservationEnded):
            for key in has:
                self.table.is_final(key)
            del self._keys[held.reservation_id], self._holdings.by_id[held.reservation_id]

    def settle(self) -> None:
        """Rows are always up to date."""


def _row(held: Held, piece: Piece, start: int, end: int) -> CalendarRow:
    return CalendarRow(
        held.reservation_id,
        piece.node_id,
        piece.first_milli,
        piece.width_milli,
        start,
        end,
        held.tenant_id,
        held.pool_id,
        held.klass,
        held.state,
    )

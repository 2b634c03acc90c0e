"""Charge rows in PostgreSQL: closed ones for ever, open ones as they were last loaded."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from domain.ids import TenantId
from domain.merkle import Tree, leaf_hash
from domain.messages import ClosedCharge
from domain.periods import Period, PeriodState
from domain.publishing import ChargePlace
from domain.timespan import Instant
from projections.focus import COLUMNS, Row, canonical, decimal

LOCK_NUMBER = 0x67_70_63_68
"""The advisory lock under which one process at a time loads charges."""
ROWS_AT_ONCE = 5_000

_COLUMNS = sql.SQL(", ").join(map(sql.Identifier, COLUMNS))
_INSTANT = "%Y-%m-%dT%H:%M:%SZ"


class RowsDiffer(Exception):
    """The rows of a closed period are not those of its seal."""


@dataclass(frozen=True, slots=True)
class ChargePeriod:
    """One period whose rows are to be kept: how far it was rated, and where its seal stands."""

    period: Period
    rated_to_seq: int
    rated_to: Instant
    closed_seq: int = 0
    """0 while it is not closed."""

    @property
    def key(self) -> tuple[str, int]:
        """Its account and its first instant."""
        return self.period.tenant_id, self.period.start


class ChargeTables:
    """The tables behind the views of the schema `finance`."""

    def __init__(self, dsn: str) -> None:
        """Connect. Raises psycopg's `OperationalError`."""
        self._db = psycopg.connect(dsn, autocommit=True, row_factory=dict_row)
        self._db.execute("SET TIME ZONE 'UTC'")

    def __enter__(self) -> Self:
        """Load alone."""
        self._db.execute("SELECT pg_advisory_lock(%s)", (LOCK_NUMBER,))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go of the connection, and of the lock with it."""
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self._db.close()

    def closed(self) -> set[tuple[str, int]]:
        """The closed periods that are kept already, by account and first instant."""
        found = self._db.execute(
            'SELECT account_id, "start" FROM charge_period WHERE closed_seq > 0'
        )
        return {(row["account_id"], row["start"]) for row in found}

    def keep(self, which: ChargePeriod, rows: Iterable[Row]) -> int:
        """Keep the rows of a closed period, if their root is that of its seal; how many.

        Raises `RowsDiffer`, and keeps nothing then.
        """
        assert which.period.state is PeriodState.CLOSED, "only what is closed is kept for ever"
        with self._db.transaction():
            self._db.execute(
                'DELETE FROM charge_period WHERE account_id = %s AND "start" = %s', which.key
            )
            leaves = self._copy("closed_charge", which, rows)
            root = Tree().grown(leaves)[0].root
            if root != which.period.row_root:
                told = f"{root.hex()}, its seal says {which.period.row_root.hex()}"
                raise RowsDiffer(f"{which.period.tenant_id} {which.period.start}: rows have {told}")
            self._note(which, len(leaves))
        return len(leaves)

    def replace_open(self, found: Iterable[tuple[ChargePeriod, Iterable[Row]]]) -> int:
        """Let the rows of open periods be these, and no others; how many."""
        count = 0
        with self._db.transaction():
            self._db.execute("DELETE FROM open_charge")
            self._db.execute("DELETE FROM charge_period WHERE closed_seq = 0")
            for which, rows in found:
                leaves = self._copy("open_charge", which, rows)
                self._note(which, len(leaves))
                count += len(leaves)
        return count

    def _copy(self, table: str, which: ChargePeriod, rows: Iterable[Row]) -> list[bytes]:
        """Rows into a table; their leaves."""
        leaves: list[bytes] = []
        copy_in = sql.SQL(
            "COPY {} (account_id, period_start, closed_seq, number, {}) FROM STDIN"
        ).format(sql.Identifier(table), _COLUMNS)
        with self._db.cursor() as cursor, cursor.copy(copy_in) as copy:
            for number, row in enumerate(rows, 1):
                place = (*which.key, which.closed_seq, number)
                copy.write_row((*place, *(row[name] for name in COLUMNS)))
                leaves.append(leaf_hash(canonical(row)))
        return leaves

    def _note(self, which: ChargePeriod, rows: int) -> None:
        period = which.period
        self._db.execute(
            'INSERT INTO charge_period (account_id, "start", "end", zone, settlement, closed_seq,'
            " rated_to_seq, rated_to, rows)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, to_timestamp(%s / 1000000.0), %s)",
            (
                *which.key,
                period.end,
                period.zone,
                period.settlement.value,
                which.closed_seq,
                which.rated_to_seq,
                which.rated_to,
                rows,
            ),
        )

    def rows(self) -> Iterator[Row]:
        """Every row that finance sees, as text, as it was made."""
        select = sql.SQL("SELECT {} FROM finance.cost_and_usage").format(_COLUMNS)
        with self._db.transaction(), self._db.cursor(name="rows") as cursor:
            cursor.itersize = ROWS_AT_ONCE
            cursor.execute(select)
            for row in cursor:
                yield {name: text(value) for name, value in row.items()}

    def after(self, place: ChargePlace, limit: int) -> Sequence[ClosedCharge]:
        """The rows of closed periods behind a place, in order, so many at most."""
        return self._closed_rows(
            sql.SQL("(c.closed_seq, c.number) > (%s, %s) ORDER BY c.closed_seq, c.number LIMIT %s"),
            (place.closed_seq, place.number, limit),
        )

    def at(self, place: ChargePlace) -> ClosedCharge | None:
        """The row of a closed period at a place; None when there is none."""
        found = self._closed_rows(
            sql.SQL("c.closed_seq = %s AND c.number = %s"), (place.closed_seq, place.number)
        )
        return found[0] if found else None

    def _closed_rows(self, where: sql.SQL, values: Sequence[object]) -> list[ClosedCharge]:
        select = sql.SQL(
            "SELECT c.*, p.rows FROM closed_charge AS c"
            ' JOIN charge_period AS p ON p.account_id = c.account_id AND p."start" = c.period_start'
            " WHERE "
        )
        return [_charge(row) for row in self._db.execute(select + where, values)]


def _charge(row: dict[str, Any]) -> ClosedCharge:
    columns = {name: told for name in COLUMNS if (told := text(row[name])) is not None}
    return ClosedCharge(
        columns["x_ChargeRecordId"],
        TenantId(row["account_id"]),
        Instant(row["period_start"]),
        row["closed_seq"],
        row["number"],
        row["rows"],
        columns,
    )


def text(value: object) -> str | None:
    """A value of a row as it stands in files."""
    if value is None:
        return None
    if isinstance(value, Decimal):
        return decimal(value)
    return value.strftime(_INSTANT) if isinstance(value, datetime) else str(value)

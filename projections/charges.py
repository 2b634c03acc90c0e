"""Charges of billing periods: originals, corrections of closed ones, and coins.

A closed period is never touched. What is found out later is a reversal of the old charge and a
replacement by the new one, in the next period, with the original's charge period. Originals and
corrections together are what a fresh rating says, on exact amounts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from enum import StrEnum

from domain.currency import smallest
from domain.ids import TenantId, derive
from domain.pricing import EXACT
from domain.timespan import Timespan
from projections.rating import Charge, ChargeKey

_ROWS = bytes.fromhex("b1f0c1f2c9d94b5e8f0ad6c45c1f7a10")
"""The namespace of row ids."""


class RowKind(StrEnum):
    """Whether a row charges, takes back, or charges anew."""

    ORIGINAL = "original"
    REVERSAL = "reversal"
    REPLACEMENT = "replacement"


@dataclass(frozen=True, slots=True)
class ChargeRow:
    """One row of an invoice: a charge, its sign, and the coins that it bills."""

    charge: Charge
    kind: RowKind
    period: Timespan
    corrected: Timespan | None
    """The period whose charge it corrects; None when it corrects none."""
    id: str
    """The same row, the same id, however often it is made."""
    billed: Decimal = Decimal(0)

    @property
    def sign(self) -> int:
        """-1 for a reversal."""
        return -1 if self.kind is RowKind.REVERSAL else 1

    @property
    def quantity(self) -> Decimal:
        """GPU-hours with their sign."""
        return self._signed(self.charge.quantity)

    @property
    def gpu_microseconds(self) -> int:
        """The exact amount with its sign; what is credited counts positively here."""
        return self.sign * self.charge.gpu_microseconds

    @property
    def contracted_cost(self) -> Decimal:
        """Exact, with its sign."""
        return self._signed(self.charge.contracted_cost)

    @property
    def list_cost(self) -> Decimal:
        """Exact, with its sign, before any discount."""
        return self._signed(self.charge.list_cost)

    def _signed(self, amount: Decimal) -> Decimal:
        return amount.copy_negate() if self.kind is RowKind.REVERSAL else amount

    @property
    def line(self) -> tuple[object, ...]:
        """The invoice line that it belongs to: what is rounded once, together."""
        return line_of(self.charge, self.corrected or self.period)

    @property
    def original_id(self) -> str:
        """The id of the charge's own row in the period that it belongs to by its time."""
        return row_id(self.charge.key, RowKind.ORIGINAL, "")


def _row(
    charge: Charge, kind: RowKind, period: Timespan, corrected: Timespan | None = None
) -> ChargeRow:
    """A row that bills nothing yet."""
    correction = "" if corrected is None else str(period.start)
    return ChargeRow(charge, kind, period, corrected, row_id(charge.key, kind, correction))


def line_of(charge: Charge, period: Timespan) -> tuple[object, ...]:
    """What is rounded together: a tenant's charges for one SKU of one pool in one period."""
    key = charge.key
    price = charge.price
    return (charge.account_id, key.tenant_id, key.pool_id, price.sku_id, price.currency, period)


def row_id(key: ChargeKey, kind: RowKind, correction: str) -> str:
    """UUIDv5 of everything that makes a row that row, as 32 hex digits."""
    said = "\0".join((*map(str, key), kind.value, correction))
    return derive(_ROWS, said)


Charges = Mapping[ChargeKey, Charge]
"""The charges of one billing account."""


def by_account(charges: Mapping[ChargeKey, Charge]) -> dict[TenantId, Charges]:
    """Charges of all accounts, an account at a time."""
    found: dict[TenantId, dict[ChargeKey, Charge]] = {}
    for key, charge in charges.items():
        found.setdefault(charge.account_id, {})[key] = charge
    return {account_id: found[account_id] for account_id in sorted(found)}


def originals(charges: Charges, period: Timespan, reach: Timespan | None = None) -> list[ChargeRow]:
    """The charges whose time lies in a period, billed to the coin.

    `reach` is the time that is taken in where it is another one than the period's.
    """
    span = reach or period
    found = [
        _row(charge, RowKind.ORIGINAL, period)
        for key, charge in charges.items()
        if span.start <= key.start < span.end
    ]
    return _billed(found, {}, {})


def corrections(
    before: Charges,
    after: Charges,
    corrected: Timespan,
    period: Timespan,
    reach: Timespan | None = None,
) -> list[ChargeRow]:
    """What a later rating says otherwise of a closed period, as reversals and replacements.

    `before` is the rating up to the cutoff of the period before `period`: what was billed so
    far. The rows bill what the whole line comes to now, less what it came to before.
    """
    old, new = (_of(charges, reach or corrected) for charges in (before, after))
    rows: list[ChargeRow] = []
    for key in sorted(old.keys() | new.keys()):
        was, now = old.get(key), new.get(key)
        if was is not None and now is not None and was.gpu_microseconds == now.gpu_microseconds:
            continue
        if was is not None:
            rows.append(_row(was, RowKind.REVERSAL, period, corrected))
        if now is not None:
            rows.append(_row(now, RowKind.REPLACEMENT, period, corrected))
    return _billed(rows, _line_sums(old.values(), corrected), _line_sums(new.values(), corrected))


def _of(charges: Charges, span: Timespan) -> dict[ChargeKey, Charge]:
    return {key: charge for key, charge in charges.items() if span.start <= key.start < span.end}


def _line_sums(charges: Iterable[Charge], period: Timespan) -> dict[tuple[object, ...], Decimal]:
    sums: dict[tuple[object, ...], Decimal] = {}
    for charge in charges:
        line = line_of(charge, period)
        sums[line] = EXACT.add(sums.get(line, Decimal(0)), charge.contracted_cost)
    return sums


def to_coins(amount: Decimal, currency: str) -> Decimal:
    """An exact amount as it can be paid: half a coin goes to the even one."""
    coin = smallest(currency)
    return amount.quantize(coin, ROUND_HALF_EVEN)


def _billed(
    rows: list[ChargeRow],
    before: Mapping[tuple[object, ...], Decimal],
    after: Mapping[tuple[object, ...], Decimal],
) -> list[ChargeRow]:
    """Rows with their coins: each line is rounded once and shared by largest remainder."""
    lines: dict[tuple[object, ...], list[ChargeRow]] = {}
    for row in rows:
        lines.setdefault(row.line, []).append(row)
    found: list[ChargeRow] = []
    for line, of_line in lines.items():
        currency = of_line[0].charge.price.currency
        if line in before or line in after:
            was = to_coins(before.get(line, Decimal(0)), currency)
            total = to_coins(after.get(line, Decimal(0)), currency) - was
        else:
            exact = Decimal(0)
            for row in of_line:
                exact = EXACT.add(exact, row.contracted_cost)
            total = to_coins(exact, currency)
        ordered = sorted(of_line, key=lambda row: row.id)
        shares = share([row.contracted_cost for row in ordered], total, smallest(currency))
        found += [
            ChargeRow(row.charge, row.kind, row.period, row.corrected, row.id, billed)
            for row, billed in zip(ordered, shares, strict=True)
        ]
    return sorted(found, key=lambda row: (row.charge.key, row.kind, row.id))


def share(amounts: Sequence[Decimal], total: Decimal, coin: Decimal) -> list[Decimal]:
    """Whole coins for each amount that sum to a total: the largest remainders get the odd ones.

    Among equal remainders the first ones do, so the order of the amounts must be theirs for ever.
    """
    floors = [EXACT.divide(amount, coin).to_integral_value(ROUND_FLOOR) for amount in amounts]
    odd = int(EXACT.divide(total, coin)) - sum(map(int, floors))
    each, extra = divmod(odd, len(amounts))
    rests = [
        EXACT.subtract(amount, EXACT.multiply(floor, coin))
        for amount, floor in zip(amounts, floors, strict=True)
    ]
    by_rest = sorted(range(len(amounts)), key=lambda place: -rests[place])
    chosen = set(by_rest[:extra])
    return [
        EXACT.multiply(floor + each + (place in chosen), coin) for place, floor in enumerate(floors)
    ]

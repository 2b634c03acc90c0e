"""Rating: from what everybody had to what it costs. Pure, exact, and without a currency's coins.

Amounts of GPU time are integers of GPU-microseconds, quantities are GPU-hours rounded once to
`QUANTITY_PLACES`, costs are price x quantity, exact. Rounding to coins comes later (`charges`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from domain.ids import PoolId, ReservationId, TenantId
from domain.pricing import (
    CREDITS,
    EXACT,
    FORGONE,
    SkuMeter,
    UnusedSplit,
)
from domain.timespan import Instant
from projections.consumption import Line
from projections.meter import HOUR_MS
from projections.tariffs import Priced, Tariffs
from projections.terms import Terms

RATING_VERSION = "1"
"""Changes with any rule by which usage becomes charges; it is pinned in each closed period."""

GPU_MICROSECONDS_PER_HOUR = 3_600_000_000
QUANTITY_PLACES = 12
OUTSIDE = FORGONE | {SkuMeter.SHORTAGE, SkuMeter.OVERRUN, SkuMeter.LENT}
"""Meters outside the sum of states: without a price of their own they make no charge."""

_STEP = Decimal(1).scaleb(-QUANTITY_PLACES)


class ChargeKey(NamedTuple):
    """What makes two charges the same one, whatever they came to."""

    tenant_id: TenantId
    pool_id: PoolId
    reservation_id: ReservationId
    meter: SkuMeter
    model: str
    start: Instant
    end: Instant
    sku_price_id: str
    split_from: str
    """The tenant that held what was split; empty when nothing was."""


@dataclass(frozen=True, slots=True)
class Charge:
    """What one reservation comes to on one meter in an hour, exact. Credits count negatively."""

    key: ChargeKey
    account_id: TenantId
    price: Priced
    gpu_microseconds: int
    costs: "Costs"

    @property
    def is_credit(self) -> bool:
        """Whether it is paid to the tenant."""
        return self.key.meter in CREDITS

    @property
    def quantity(self) -> Decimal:
        """GPU-hours, rounded once; negative for a credit."""
        return self.costs.quantity

    @property
    def list_cost(self) -> Decimal:
        """At the list price, exact."""
        return self.costs.at_list

    @property
    def contracted_cost(self) -> Decimal:
        """At the price after discounts, exact."""
        return self.costs.contracted


class Costs(NamedTuple):
    """What an amount comes to at a price; negative for a credit."""

    quantity: Decimal
    at_list: Decimal
    contracted: Decimal


def costs_of(price: Priced, gpu_microseconds: int) -> Costs:
    """GPU-hours, rounded once, and exact costs of an amount at a price."""
    quantity = hours(gpu_microseconds)
    if price.meter in CREDITS:
        quantity = quantity.copy_negate()
    return Costs(
        quantity,
        EXACT.multiply(price.list_price, quantity),
        EXACT.multiply(price.contracted_price, quantity),
    )


@lru_cache(65_536)
def hours(gpu_microseconds: int) -> Decimal:
    """GPU-hours of an amount, to `QUANTITY_PLACES` places, half to even."""
    whole, rest = divmod(gpu_microseconds, GPU_MICROSECONDS_PER_HOUR)
    part = (Decimal(rest) / GPU_MICROSECONDS_PER_HOUR).quantize(_STEP)
    return EXACT.add(Decimal(whole), part).normalize()


def split(amount: int, parts: int) -> list[int]:
    """An amount in equal whole parts; what does not divide goes to the first ones, one each."""
    each, over = divmod(amount, parts)
    return [each + (place < over) for place in range(parts)]


def cuts_of(terms: Terms) -> set[Instant]:
    """Where hours must be split: at prices and at periods that do not begin with an hour."""
    bounds = {
        edge
        for periods in terms.periods.values()
        for period in periods
        for edge in (period.start, period.end)
    }
    return {edge for edge in bounds if edge // 1000 % HOUR_MS} | Tariffs(terms).cuts()


def rate(lines: Iterable[Line], terms: Terms) -> dict[ChargeKey, Charge]:
    """Every charge for some usage, by its key; parts of an hour that nothing divides are one.

    The usage must have been cut at `cuts_of` the same terms.
    """
    tariffs = Tariffs(terms)
    bounds = _bounds(terms)
    sums: dict[ChargeKey, tuple[TenantId, Priced, int]] = {}
    accounts = {tenant_id: terms.account_of(tenant_id) for tenant_id in terms.tenants}
    for line in lines:
        if not line.gpu_microseconds:
            continue
        at = Instant(line.start_ms * 1000)
        price = tariffs.of(line)
        if price is None or (line.meter in OUTSIDE and not price.list_price):
            continue
        account_id = accounts[line.tenant_id]
        start, end = _within(at, price, bounds.get(account_id, ()))
        for tenant_id, split_from, amount in _payers(terms, line, price, start, end):
            key = ChargeKey(
                tenant_id,
                line.pool_id,
                line.reservation_id,
                line.meter,
                line.model,
                start,
                end,
                price.sku_price_id,
                split_from,
            )
            had = sums.get(key)
            sums[key] = (account_id, price, amount if had is None else had[2] + amount)
    return _costed(sums)


def _costed(sums: dict[ChargeKey, tuple[TenantId, Priced, int]]) -> dict[ChargeKey, Charge]:
    """Charges with their costs: most amounts come often, whole hours above all."""
    known: dict[tuple[int, int], Costs] = {}
    found: dict[ChargeKey, Charge] = {}
    for key, (account_id, price, amount) in sums.items():
        # Prices live as long as the sums do, so an identity is one price's.
        costs = known.get((id(price), amount))
        if costs is None:
            costs = known[id(price), amount] = costs_of(price, amount)
        found[key] = Charge(key, account_id, price, amount, costs)
    return found


def _bounds(terms: Terms) -> Mapping[TenantId, tuple[Instant, ...]]:
    return {
        account_id: tuple(sorted({edge for p in periods for edge in (p.start, p.end)}))
        for account_id, periods in terms.periods.items()
    }


def _within(at: Instant, price: Priced, bounds: Iterable[Instant]) -> tuple[Instant, Instant]:
    """The charge period around an instant: its hour, cut by the price's span and by periods."""
    start = at - at // 1000 % HOUR_MS * 1000
    end = start + HOUR_MS * 1000
    for edge in (price.start, price.end, *bounds):
        if start < edge <= at:
            start = edge
        elif at < edge < end:
            end = edge
    return Instant(start), Instant(end)


def _payers(
    terms: Terms, line: Line, price: Priced, start: Instant, end: Instant
) -> Iterator[tuple[TenantId, str, int]]:
    """Who pays for a line: its tenant, or for what nobody used, those inside it alike."""
    splits = line.meter is SkuMeter.RESERVED_UNUSED and price.unused_split is UnusedSplit.MEMBERS
    members = terms.members(line.tenant_id, start, end) if splits else ()
    if not members:
        yield line.tenant_id, "", line.gpu_microseconds
        return
    amounts = split(line.gpu_microseconds, len(members))
    for member, amount in zip(members, amounts, strict=True):
        if amount:
            yield member, line.tenant_id, amount

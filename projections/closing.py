"""Closing: what the seal of a period says, and what the hours of a pool came to."""

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

from domain.commands.billing import ClosePoolHours, SealPeriod
from domain.decide.pool_hours import POOL_HOURS_MAX
from domain.ids import PoolId
from domain.pool_hours import HOUR, STATES, PoolHour, StateSum
from domain.timespan import Instant
from projections.consumption import Consumption
from projections.focus import decimal, row_root
from projections.invoicing import Invoice
from projections.rating import RATING_VERSION
from projections.usage import CapacityRow, UsageRow


class MixedCurrencies(Exception):
    """An invoice has one currency; price books of two hold for its account."""


def billed(invoice: Invoice) -> tuple[Decimal, str]:
    """What an invoice comes to, and in which currency. Raises `MixedCurrencies`."""
    currencies = {row.charge.price.currency for row in invoice.rows}
    if len(currencies) > 1:
        raise MixedCurrencies(", ".join(sorted(currencies)))
    total = sum((row.billed for row in invoice.rows), Decimal(0))
    return total, min(currencies, default="")


def seal_of(invoice: Invoice) -> SealPeriod:
    """The command that makes an invoice final. Raises `MixedCurrencies`."""
    total, currency = billed(invoice)
    return SealPeriod(
        invoice.period.tenant_id,
        invoice.period.start,
        invoice.rated.seq,
        RATING_VERSION,
        len(invoice.rows),
        row_root(invoice),
        decimal(total),
        currency,
    )


def pool_hours(books: Consumption) -> dict[PoolId, dict[Instant, PoolHour]]:
    """Every hour of every pool that was over where closed books end, from a pool's first one on."""
    sums: defaultdict[tuple[str, int], defaultdict[str, int]] = defaultdict(
        lambda: defaultdict(int)
    )
    for row in books.usage:
        if isinstance(row, UsageRow):
            sums[row.pool_id, row.hour][row.state] += row.gpu_microseconds
    had = {
        (row.pool_id, row.hour): row.gpu_microseconds
        for row in books.capacity
        if isinstance(row, CapacityRow)
    }
    found: dict[PoolId, dict[Instant, PoolHour]] = {}
    for pool_id in sorted({pool_id for pool_id, _ in had}):
        first = min(hour for of_pool, hour in had if of_pool == pool_id)
        found[PoolId(pool_id)] = {
            Instant(at): _hour(at, had.get((pool_id, at), 0), sums.get((pool_id, at), {}))
            for at in range(first, books.last - HOUR + 1, HOUR)
        }
    return found


def _hour(at: int, capacity: int, sums: dict[str, int]) -> PoolHour:
    states = tuple(StateSum(name, sums[name]) for name in STATES if sums.get(name))
    return PoolHour(Instant(at), capacity, states)


def hours_to_close(
    books: Consumption, until: Instant, pool_id: str = ""
) -> Iterator[ClosePoolHours]:
    """The commands that close what is still open of one pool's hours, or of all pools'."""
    closed = {fact.pool_id: fact.hours[-1].start + HOUR for fact in books.terms.pool_hours}
    for name, hours in pool_hours(books).items():
        if pool_id not in {"", name}:
            continue
        still = [
            hour for at, hour in hours.items() if closed.get(name, 0) <= at and at + HOUR <= until
        ]
        for first in range(0, len(still), POOL_HOURS_MAX):
            yield ClosePoolHours(name, books.seq, tuple(still[first : first + POOL_HOURS_MAX]))

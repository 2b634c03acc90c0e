"""Tariffs: the price of a line of usage, by the books in force or by the quote that it was booked under."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from domain.ids import TenantId
from domain.pricing import PriceVersion, Rate, SkuMeter, UnusedSplit, contracted, in_force
from domain.quoting import as_quoted
from domain.timespan import Instant
from projections.consumption import Line
from projections.meter import HOUR_MS
from projections.terms import Terms


@dataclass(frozen=True, slots=True)
class Priced:
    """A rate of one version of a book, ready to multiply by."""

    book_id: str
    version: int
    currency: str
    meter: SkuMeter
    model: str
    list_price: Decimal
    contracted_price: Decimal
    unused_split: UnusedSplit
    start: Instant
    end: Instant
    sku_id: str
    """What is sold: it outlives versions of prices."""
    sku_price_id: str
    """What is sold, at one version's price."""


class _Shelf:
    """Versions of prices by whom they are for."""

    def __init__(self, versions: Iterable[PriceVersion]) -> None:
        self._of_tenant: dict[TenantId, list[PriceVersion]] = {}
        self._others: list[PriceVersion] = []
        for version in versions:
            for tenant_id in version.tenant_ids:
                self._of_tenant.setdefault(tenant_id, []).append(version)
            if not version.tenant_ids:
                self._others.append(version)

    def nearest_first(self, terms: Terms, tenant_id: TenantId) -> Iterator[Sequence[PriceVersion]]:
        """Those that name a tenant, then those that name one around it, then those for all."""
        name: TenantId | None = tenant_id
        while name is not None:
            yield self._of_tenant.get(name, ())
            life = terms.tenants.get(name)
            name = life.parent_id if life else None
        yield self._others


class Tariffs:
    """All prices at one position of the log."""

    def __init__(self, terms: Terms) -> None:
        """Of the books as far as they were published."""
        self._terms = terms
        books = terms.books.values()
        self._in_force = _Shelf(v for versions in books for v in in_force(versions))
        self._quoted: dict[str, _Shelf] = {}
        self._versions = [version for versions in books for version in versions]
        rates = (rate for version in self._versions for rate in version.rates)
        self._notices = sorted({0, *(rate.notice_seconds for rate in rates)})
        self._found: dict[tuple[TenantId, SkuMeter, str, int, str], list[Priced]] = {}

    def cuts(self) -> set[Instant]:
        """Instants inside an hour at which a price changes."""
        edges = {edge for version in self._versions for edge in (version.start, version.end)}
        return {edge for edge in edges if edge // 1000 % HOUR_MS}

    def of(self, line: Line) -> Priced | None:
        """The price of a line of usage; None where nothing is charged.

        By its quote, as far as that reaches; then by the book in force that names the tenant, or
        the nearest of those that it lies in. A book that holds for it and has no such rate makes
        it free.
        """
        notice = self._notices[bisect_right(self._notices, line.notice_seconds) - 1]
        key = (line.tenant_id, line.meter, line.model, notice, line.quote)
        spans = self._found.get(key)
        if spans is None:
            spans = self._found[key] = list(_in_turn(self._spans(*key)))
        at = line.start_ms * 1000
        for priced in spans:
            if priced.start <= at < priced.end:
                return priced
        return None

    def _spans(
        self, tenant_id: TenantId, meter: SkuMeter, model: str, notice_seconds: int, quote: str
    ) -> Iterator[Priced]:
        for shelf in (self._as_quoted(quote), self._in_force) if quote else (self._in_force,):
            for versions in shelf.nearest_first(self._terms, tenant_id):
                for version in versions:
                    rate = version.rate_of(meter, model, notice_seconds) or Rate(meter, "0")
                    yield _priced(version, rate, model)

    def _as_quoted(self, quote: str) -> _Shelf:
        shelf = self._quoted.get(quote)
        if shelf is None:
            shelf = self._quoted[quote] = _Shelf(as_quoted(self._terms.books, quote))
        return shelf


def _in_turn(spans: Iterable[Priced]) -> Iterator[Priced]:
    """Prices as far as none before them holds, so that no two hold at one instant."""
    taken: list[Priced] = []
    for priced in spans:
        left = [priced]
        for other in taken:
            left = [part for one in left for part in _without(one, other)]
        yield from left
        taken.append(priced)


def _without(one: Priced, other: Priced) -> Iterator[Priced]:
    if other.end <= one.start or one.end <= other.start:
        yield one
        return
    if one.start < other.start:
        yield replace(one, end=other.start)
    if other.end < one.end:
        yield replace(one, start=other.end)


def _priced(version: PriceVersion, rate: Rate, model: str) -> Priced:
    notice = f"/notice-{rate.notice_seconds}s" if rate.notice_seconds else ""
    sku_id = f"gpu/{model or 'any'}/{rate.meter.value}{notice}"
    return Priced(
        version.book_id,
        version.version,
        version.currency,
        rate.meter,
        model,
        Decimal(rate.list_price),
        contracted(rate),
        version.unused_split,
        version.start,
        version.end,
        sku_id,
        f"{version.book_id}:{version.version}/{sku_id}",
    )

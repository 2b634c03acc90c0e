"""Quotes: the price book that a booking was made under, as it stood then.

A quote is a text, `BOOK:N`: of book BOOK what versions 1 to N say, and what corrects them. It
holds for the window that was booked; prices that are published later are for other bookings.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from domain.ids import TenantId
from domain.pricing import PriceVersion, in_force
from domain.timespan import Instant

EVERYBODY = TenantId("")
"""In a price list: all tenants that no book names."""


@dataclass(frozen=True, slots=True)
class PriceList:
    """Which book holds for whom and when, and how many versions it has."""

    spans: Mapping[TenantId, Sequence[tuple[Instant, Instant, str]]] = field(default_factory=dict)
    newest: Mapping[str, int] = field(default_factory=dict)

    def quote(self, chain: Iterator[TenantId], at: Instant) -> str:
        """A quote for a tenant, the first of those that it lies in; empty where no book holds."""
        for tenant_id in (*chain, EVERYBODY):
            for start, end, book_id in self.spans.get(tenant_id, ()):
                if start <= at < end:
                    return f"{book_id}:{self.newest[book_id]}"
        return ""


def price_list(books: Mapping[str, Sequence[PriceVersion]]) -> PriceList:
    """The price list of some books."""
    spans: dict[TenantId, list[tuple[Instant, Instant, str]]] = {}
    for book_id, versions in books.items():
        for version in in_force(versions):
            for tenant_id in version.tenant_ids or (EVERYBODY,):
                spans.setdefault(tenant_id, []).append((version.start, version.end, book_id))
    return PriceList(spans, {book_id: len(versions) for book_id, versions in books.items()})


def as_quoted(books: Mapping[str, Sequence[PriceVersion]], quote: str) -> tuple[PriceVersion, ...]:
    """What holds by a quote: the versions that it knew, and later ones that correct those."""
    book_id, _, number = quote.rpartition(":")
    known: list[PriceVersion] = []
    for version in books.get(book_id, ()):
        corrects = version.corrects in {one.version for one in known}
        if version.version <= int(number) or (version.corrects is not None and corrects):
            known.append(version)
    return in_force(known)

"""Facts of money: prices that hold from an instant on, and periods that were closed."""

from dataclasses import dataclass

from domain.ids import PoolId, TenantId
from domain.periods import ProviderLine, Settlement
from domain.pricing import Rate, UnusedSplit
from domain.timespan import Instant


@dataclass(frozen=True, slots=True)
class PriceBookPublished:
    """A version of a price book holds over a span; a correction takes an earlier one's place."""

    book_id: str
    version: int
    currency: str
    start: Instant
    end: Instant
    tenant_ids: tuple[TenantId, ...]
    rates: tuple[Rate, ...]
    unused_split: UnusedSplit
    corrects: int | None

    @property
    def stream(self) -> str:
        """The book's stream."""
        return f"price-book/{self.book_id}"


class OfPeriod:
    """A fact of a billing account's period."""

    __slots__ = ()
    tenant_id: TenantId
    start: Instant

    @property
    def stream(self) -> str:
        """The period's stream."""
        return f"period/{self.tenant_id}/{self.start}"


@dataclass(frozen=True, slots=True)
class PeriodClosing(OfPeriod):
    """The facts up to and with this one make up the period; its own position is the cutoff."""

    tenant_id: TenantId
    start: Instant
    end: Instant
    zone: str
    settlement: Settlement


@dataclass(frozen=True, slots=True)
class PeriodClosed(OfPeriod):
    """The charges of a period are final: so many rows, proven by the root of their tree."""

    tenant_id: TenantId
    start: Instant
    end: Instant
    cutoff_seq: int
    rating_version: str
    rows: int
    row_root: bytes
    billed: str
    currency: str


@dataclass(frozen=True, slots=True)
class ProviderInvoiceImported:
    """A provider wants this for the overflow of a pool over a span; it may replace an earlier one."""

    provider: str
    invoice_id: str
    pool_id: PoolId
    start: Instant
    end: Instant
    currency: str
    lines: tuple[ProviderLine, ...]
    replaces: str

    @property
    def stream(self) -> str:
        """The invoice's stream."""
        return f"provider-invoice/{self.provider}/{self.invoice_id}"

"""Commands on price books and billing periods."""

from dataclasses import dataclass

from domain.ids import PoolId, TenantId
from domain.periods import ProviderLine, Settlement
from domain.pool_hours import PoolHour
from domain.pricing import Rate, UnusedSplit
from domain.timespan import FAR_FUTURE, Instant


@dataclass(frozen=True, slots=True)
class PublishPriceBook:
    """Let prices hold over a span, for some tenants or for all others; or correct a version."""

    book_id: str
    currency: str
    start: Instant
    rates: tuple[Rate, ...]
    end: Instant = FAR_FUTURE
    tenant_ids: tuple[TenantId, ...] = ()
    unused_split: UnusedSplit = UnusedSplit.HOLDER
    corrects: int | None = None


@dataclass(frozen=True, slots=True)
class ClosePeriod:
    """Fix the cutoff of a billing account's period: what comes later corrects it in the next."""

    tenant_id: TenantId
    start: Instant
    end: Instant
    zone: str = "UTC"
    settlement: Settlement = Settlement.CHARGEBACK


@dataclass(frozen=True, slots=True)
class SealPeriod:
    """Make the charges of a closing period final, as they were rated up to its cutoff."""

    tenant_id: TenantId
    start: Instant
    cutoff_seq: int
    rating_version: str
    rows: int
    row_root: bytes
    billed: str
    currency: str


@dataclass(frozen=True, slots=True)
class ClosePoolHours:
    """Make hours of a pool final, as the facts up to a position tell them; each must balance."""

    pool_id: PoolId
    cutoff_seq: int
    hours: tuple[PoolHour, ...]


@dataclass(frozen=True, slots=True)
class ImportProviderInvoice:
    """Take in what a provider wants for the overflow of a pool, to be compared with its rows."""

    provider: str
    invoice_id: str
    pool_id: PoolId
    start: Instant
    end: Instant
    currency: str
    lines: tuple[ProviderLine, ...]
    replaces: str = ""

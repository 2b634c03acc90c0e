"""Billing periods: a billing account's months (or weeks), open until closed, one after the other."""

from dataclasses import dataclass
from enum import StrEnum

from domain.ids import TenantId
from domain.timespan import Instant, Timespan


class PeriodState(StrEnum):
    """What may still happen to the charges of a period."""

    OPEN = "open"
    """Charges are recomputed as facts come in."""
    CLOSING = "closing"
    """Its cutoff is fixed: later facts correct it in the next period."""
    CLOSED = "closed"
    """Its rows are proven by their root and never touched again."""


class Settlement(StrEnum):
    """Whether money changes hands."""

    SHOWBACK = "showback"
    CHARGEBACK = "chargeback"


@dataclass(frozen=True, slots=True)
class Period:
    """One period of a billing account, closing or closed; `cutoff_seq` is 0 until it is closed."""

    tenant_id: TenantId
    start: Instant
    end: Instant
    zone: str
    settlement: Settlement
    state: PeriodState
    cutoff_seq: int = 0
    row_root: bytes = b""

    @property
    def span(self) -> Timespan:
        """Its time."""
        return Timespan(self.start, self.end)


@dataclass(frozen=True, slots=True)
class ProviderSpan:
    """What an imported invoice of a provider is for."""

    invoice_id: str
    start: Instant
    end: Instant
    is_replaced: bool = False


@dataclass(frozen=True, slots=True)
class ProviderLine:
    """What a provider wants for one model: GPU-hours and an amount, as decimal texts."""

    model: str
    gpu_hours: str
    amount: str

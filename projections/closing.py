"""Closing a period: what its seal says, and whether it still holds."""

from decimal import Decimal

from domain.commands.billing import SealPeriod
from projections.focus import decimal, row_root
from projections.invoicing import Invoice
from projections.rating import RATING_VERSION


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

"""How the facts of prices and periods change the ledger."""

from domain.facts import billing, pool
from domain.ledger import Ledger
from domain.periods import Period, PeriodState, ProviderSpan
from domain.pool_hours import HOUR
from domain.pricing import PriceVersion
from domain.quoting import price_list
from domain.timespan import Instant


def price_book_published(ledger: Ledger, fact: billing.PriceBookPublished, at: Instant) -> None:
    """A further version of a book."""
    version = PriceVersion(
        fact.book_id,
        fact.version,
        fact.currency,
        fact.start,
        fact.end,
        fact.tenant_ids,
        fact.rates,
        fact.unused_split,
        fact.corrects,
    )
    versions = ledger.price_books.get(fact.book_id, ())
    ledger.undo.put(ledger.price_books, fact.book_id, (*versions, version))
    ledger.undo.set(ledger, "price_list", price_list(ledger.price_books))


def period_closing(ledger: Ledger, fact: billing.PeriodClosing, at: Instant) -> None:
    """A period's cutoff is fixed."""
    period = Period(
        fact.tenant_id, fact.start, fact.end, fact.zone, fact.settlement, PeriodState.CLOSING
    )
    periods = ledger.periods.get(fact.tenant_id, ())
    ledger.undo.put(ledger.periods, fact.tenant_id, (*periods, period))


def period_closed(ledger: Ledger, fact: billing.PeriodClosed, at: Instant) -> None:
    """A period is final."""
    *before, last = ledger.periods[fact.tenant_id]
    closed = Period(
        last.tenant_id,
        last.start,
        last.end,
        last.zone,
        last.settlement,
        PeriodState.CLOSED,
        fact.cutoff_seq,
        fact.row_root,
    )
    ledger.undo.put(ledger.periods, fact.tenant_id, (*before, closed))


def pool_hours_closed(ledger: Ledger, fact: pool.PoolHoursClosed, at: Instant) -> None:
    """The hours of a pool are closed up to here."""
    ledger.undo.put(ledger.pool_hours, fact.pool_id, Instant(fact.hours[-1].start + HOUR))


def provider_invoice_imported(
    ledger: Ledger, fact: billing.ProviderInvoiceImported, at: Instant
) -> None:
    """A further invoice of a provider; the one that it replaces stands no more."""
    key = (fact.provider, fact.pool_id)
    had = tuple(
        ProviderSpan(span.invoice_id, span.start, span.end, is_replaced=True)
        if span.invoice_id == fact.replaces
        else span
        for span in ledger.provider_spans.get(key, ())
    )
    fresh = ProviderSpan(fact.invoice_id, fact.start, fact.end)
    ledger.undo.put(ledger.provider_spans, key, (*had, fresh))

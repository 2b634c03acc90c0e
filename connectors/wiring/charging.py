"""Charges of a database: its log folded, rated, and checked."""

from collections.abc import Iterable, Iterator

from connectors.postgres.charges import ChargePeriod, ChargeTables
from connectors.postgres.journal import JournalReader
from connectors.postgres.recorded import recorded
from domain.commands.billing import ClosePoolHours
from domain.ids import TenantId
from domain.periods import PeriodState
from domain.record import Recorded
from domain.timespan import Instant
from projections.closing import hours_to_close
from projections.focus import Row, focus_rows
from projections.folding import Ratings
from projections.invoicing import Invoice, invoices
from projections.providers import Compared, compare
from schemas.registry import registry


def ratings_of(dsn: str) -> Ratings:
    """The ratings of the log in a database."""

    def log() -> Iterator[Recorded]:
        reader = JournalReader(dsn)
        try:
            for event in reader.read_all(0):
                yield recorded(event, registry())
        finally:
            reader.close()

    return Ratings(log)


def closing_invoice(ratings: Ratings, account: str, start: Instant) -> Invoice | None:
    """The invoice of a period whose cutoff is fixed and that is not sealed yet, if there is one."""
    for invoice in invoices(TenantId(account), ratings.head(), ratings.at):
        if (invoice.period.start, invoice.period.state) == (start, PeriodState.CLOSING):
            return invoice
    return None


def all_invoices(ratings: Ratings, account: str = "") -> Iterator[Invoice]:
    """The invoices of one account, or of all."""
    for account_id in ratings.head().account_ids:
        if account in {"", account_id}:
            yield from invoices(account_id, ratings.head(), ratings.at)


def open_hours(ratings: Ratings, until: Instant, pool_id: str = "") -> list[ClosePoolHours]:
    """The commands that close what is still open of the pools' hours up to an instant."""
    books, _ = ratings.books(ratings.seq)
    return list(hours_to_close(books, until, pool_id))


def load(dsn: str, ratings: Ratings) -> tuple[int, int]:
    """Rows for finance's views: closed periods once, open ones anew; how many of each.

    Raises `RowsDiffer` when a closed period's rows are not those of its seal.
    """
    terms = ratings.head().terms
    still_open: list[tuple[ChargePeriod, Iterable[Row]]] = []
    closed = 0
    with ChargeTables(dsn) as tables:
        kept = tables.closed()
        for invoice in all_invoices(ratings):
            key = (invoice.period.tenant_id, invoice.period.start)
            seq = terms.seal_seqs.get(key, 0)
            rated = invoice.rated
            which = ChargePeriod(invoice.period, rated.seq, rated.until, seq)
            if not seq:
                still_open.append((which, focus_rows(invoice)))
            elif key not in kept:
                closed += tables.keep(which, focus_rows(invoice))
        return closed, tables.replace_open(still_open)


def kept_rows(dsn: str) -> Iterator[Row]:
    """The rows that finance's views show, as text."""
    tables = ChargeTables(dsn)
    try:
        yield from tables.rows()
    finally:
        tables.close()


def compared(ratings: Ratings) -> Iterator[Compared]:
    """Every provider's invoice beside the overflow that the log tells of."""
    head = ratings.head()
    charges = {key: each for mine in head.accounts.values() for key, each in mine.items()}
    return compare(head.terms.provider_invoices, charges)

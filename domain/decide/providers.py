"""Deciding on invoices of providers: what overflow was bought for, taken in once."""

import re

from domain.commands.billing import ImportProviderInvoice
from domain.currency import DIGITS
from domain.decide import checks
from domain.decide.transcript import Transcript
from domain.facts.billing import ProviderInvoiceImported
from domain.periods import ProviderSpan
from domain.pool_hours import HOUR
from domain.refusals import Reason, Refusal, refuse
from domain.timespan import Timespan

PROVIDER_LINES_MAX = 100
PROVIDER_INVOICES_MAX = 10_000
"""Invoices of one provider for one pool."""

_HOURS = re.compile(r"\d{1,12}(\.\d{1,12})?", re.ASCII)
_AMOUNT = re.compile(r"\d{1,12}(\.\d{1,6})?", re.ASCII)


def import_provider_invoice(t: Transcript, command: ImportProviderInvoice) -> Refusal | None:
    """An invoice is taken in once, and no two of a provider are for one hour of a pool."""
    refusal = (
        checks.name("provider", command.provider)
        or checks.name("invoice_id", command.invoice_id)
        or checks.code("replaces", command.replaces)
    )
    if refusal:
        return refusal
    if command.pool_id not in t.ledger.pools:
        return refuse(Reason.NOT_FOUND, kind="pool", id=command.pool_id)
    refusal = _window(t, command) or _lines(command)
    if refusal:
        return refusal
    had = t.ledger.provider_spans.get((command.provider, command.pool_id), ())
    refusal = _once(command, had)
    if refusal:
        return refusal
    t.write(
        ProviderInvoiceImported(
            command.provider,
            command.invoice_id,
            command.pool_id,
            command.start,
            command.end,
            command.currency,
            command.lines,
            command.replaces,
        )
    )
    return None


def _window(t: Transcript, command: ImportProviderInvoice) -> Refusal | None:
    refusal = checks.whole_seconds(Timespan(command.start, command.end))
    if refusal:
        return refusal
    if command.start % HOUR or command.end % HOUR:
        problem = "an invoice is for whole hours of UTC, as rows are"
        return refuse(Reason.WINDOW_INVALID, problem=problem)
    if command.end > t.now:
        return refuse(Reason.WINDOW_INVALID, problem="what is invoiced is not over yet")
    return None


def _lines(command: ImportProviderInvoice) -> Refusal | None:
    """Each model once, amounts that are decimals, a currency that there is."""
    if command.currency not in DIGITS:
        problem = f"{command.currency!r} is no currency of ISO 4217, such as EUR or USD"
        return refuse(Reason.MALFORMED, field="currency", problem=problem)
    asked = len(command.lines)
    if not asked:
        return refuse(Reason.MALFORMED, field="lines", problem="name at least one line")
    if asked > PROVIDER_LINES_MAX:
        return refuse(Reason.LIMIT, limit="provider_lines_max", max=PROVIDER_LINES_MAX, asked=asked)
    named: set[str] = set()
    for number, line in enumerate(command.lines):
        field = f"lines/{number}"
        refusal = checks.name(f"{field}/model", line.model)
        if refusal:
            return refusal
        if line.model in named:
            return refuse(Reason.MALFORMED, field=field, problem=f"{line.model} is there twice")
        named.add(line.model)
        if not _HOURS.fullmatch(line.gpu_hours):
            problem = "must be a decimal that is not negative, at most 12 places"
            return refuse(Reason.MALFORMED, field=f"{field}/gpu_hours", problem=problem)
        if not _AMOUNT.fullmatch(line.amount):
            problem = "must be a decimal that is not negative, at most 6 places"
            return refuse(Reason.MALFORMED, field=f"{field}/amount", problem=problem)
    return None


def _once(command: ImportProviderInvoice, had: tuple[ProviderSpan, ...]) -> Refusal | None:
    """A new name, a span of its own, and what it replaces is there."""
    if len(had) >= PROVIDER_INVOICES_MAX:
        most = PROVIDER_INVOICES_MAX
        return refuse(Reason.LIMIT, limit="provider_invoices_max", max=most, asked=len(had) + 1)
    name = f"{command.provider}/{command.invoice_id}"
    if command.invoice_id in {span.invoice_id for span in had}:
        return refuse(
            Reason.WRONG_STATE, kind="provider invoice", id=name, state="imported", verb="import"
        )
    standing = {span.invoice_id: span for span in had if not span.is_replaced}
    if command.replaces and command.replaces not in standing:
        name = f"{command.provider}/{command.replaces}"
        return refuse(Reason.NOT_FOUND, kind="provider invoice", id=name)
    mine = Timespan(command.start, command.end)
    for span in standing.values():
        if span.invoice_id != command.replaces and mine.overlaps(Timespan(span.start, span.end)):
            problem = f"{span.invoice_id} is for a part of it already; name it in replaces"
            return refuse(Reason.WINDOW_INVALID, problem=problem)
    return None

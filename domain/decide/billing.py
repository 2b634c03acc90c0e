"""Deciding on prices and on periods."""

import re
from decimal import Decimal

from domain.commands.billing import ClosePeriod, PublishPriceBook, SealPeriod
from domain.currency import DIGITS
from domain.decide import checks
from domain.decide.transcript import Transcript
from domain.facts.billing import PeriodClosed, PeriodClosing, PriceBookPublished
from domain.ledger import Ledger
from domain.periods import PeriodState
from domain.pricing import (
    PriceVersion,
    Rate,
    SkuMeter,
    clash,
    in_force,
    overpaid,
    percent_of,
    price_of,
)
from domain.refusals import Reason, Refusal, refuse
from domain.timespan import Timespan

PRICE_BOOKS_MAX = 1_000
VERSIONS_PER_BOOK_MAX = 1_000
RATES_PER_VERSION_MAX = 200
TENANTS_PER_BOOK_MAX = 500
NOTICE_SECONDS_MAX = 366 * 86_400
PERIOD_SECONDS_MAX = 366 * 86_400
ROOT_BYTES = 32
_BILLED = re.compile(r"-?\d{1,18}(\.\d{1,3})?", re.ASCII)


def publish_price_book(t: Transcript, command: PublishPriceBook) -> Refusal | None:
    """A version of a book holds over its span, unless another one already does."""
    refusal = (
        checks.name("book_id", command.book_id)
        or _currency(command.currency)
        or checks.whole_seconds(Timespan(command.start, command.end))
        or _audience(t.ledger, command)
        or _rates(command.rates)
    )
    if refusal:
        return refusal
    versions = t.ledger.price_books.get(command.book_id, ())
    refusal = _limits(t.ledger, command, len(versions)) or _corrected(command, versions)
    if refusal:
        return refusal
    version = PriceVersion(
        command.book_id,
        len(versions) + 1,
        command.currency,
        command.start,
        command.end,
        command.tenant_ids,
        command.rates,
        command.unused_split,
        command.corrects,
    )
    refusal = _clashes(t.ledger, version) or _credits(t.ledger, version)
    if refusal:
        return refusal
    t.write(
        PriceBookPublished(
            version.book_id,
            version.version,
            version.currency,
            version.start,
            version.end,
            version.tenant_ids,
            version.rates,
            version.unused_split,
            version.corrects,
        )
    )
    return None


def _currency(code: str) -> Refusal | None:
    if code in DIGITS:
        return None
    problem = f"{code!r} is no currency of ISO 4217, such as EUR or USD"
    return refuse(Reason.MALFORMED, field="currency", problem=problem)


def _audience(ledger: Ledger, command: PublishPriceBook) -> Refusal | None:
    if len(set(command.tenant_ids)) != len(command.tenant_ids):
        return refuse(Reason.MALFORMED, field="tenant_ids", problem="names a tenant twice")
    for tenant_id in command.tenant_ids:
        refusal = checks.known_tenant(ledger, tenant_id)
        if refusal:
            return refusal
    return None


def _rates(rates: tuple[Rate, ...]) -> Refusal | None:
    if not rates:
        return refuse(Reason.MALFORMED, field="rates", problem="name at least one rate")
    named: set[tuple[str, str, int]] = set()
    for number, rate in enumerate(rates):
        field = f"rates/{number}"
        notice = f"{field}/notice_seconds"
        refusal = checks.code(f"{field}/model", rate.model) or checks.between(
            notice, rate.notice_seconds, 0, NOTICE_SECONDS_MAX
        )
        if refusal:
            return refusal
        if price_of(rate.list_price) is None:
            problem = "must be a decimal that is not negative, at most 6 places, such as 2.50"
            return refuse(Reason.MALFORMED, field=f"{field}/list_price", problem=problem)
        if percent_of(rate.discount_percent) is None:
            problem = "must be a decimal from 0 to 100, at most 4 places"
            return refuse(Reason.MALFORMED, field=f"{field}/discount_percent", problem=problem)
        key = (rate.meter.value, rate.model, rate.notice_seconds)
        if key in named:
            problem = f"{rate.meter} of {rate.model or 'any model'} has two rates"
            return refuse(Reason.MALFORMED, field=field, problem=problem)
        if rate.meter is SkuMeter.LENT and rate.notice_seconds:
            return refuse(Reason.MALFORMED, field=notice, problem="quota is lent without a notice")
        named.add(key)
    return None


def _limits(ledger: Ledger, command: PublishPriceBook, versions: int) -> Refusal | None:
    books = len(ledger.price_books) + (not versions)
    for limit, most, asked in (
        ("price_books_max", PRICE_BOOKS_MAX, books),
        ("versions_per_book_max", VERSIONS_PER_BOOK_MAX, versions + 1),
        ("rates_per_version_max", RATES_PER_VERSION_MAX, len(command.rates)),
        ("tenants_per_book_max", TENANTS_PER_BOOK_MAX, len(command.tenant_ids)),
    ):
        if asked > most:
            return refuse(Reason.LIMIT, limit=limit, max=most, asked=asked)
    return None


def _corrected(command: PublishPriceBook, versions: tuple[PriceVersion, ...]) -> Refusal | None:
    """A correction names a version that stands."""
    if command.corrects is None:
        return None
    standing = {v.version for v in in_force(versions)}
    if command.corrects in standing:
        return None
    name = f"{command.book_id}:{command.corrects}"
    return refuse(Reason.NOT_FOUND, kind="price book version", id=name)


def _clashes(ledger: Ledger, version: PriceVersion) -> Refusal | None:
    """No tenant has two prices for one hour."""
    for book_id, versions in ledger.price_books.items():
        standing = [
            v
            for v in in_force(versions)
            if book_id != version.book_id or v.version != version.corrects
        ]
        other = clash(version, standing)
        if other is not None:
            return refuse(
                Reason.WRONG_STATE,
                kind="price book",
                id=version.book_id,
                state=f"{other.book_id} version {other.version} already holds from {other.start}"
                f" to {other.end} for the same tenants",
                verb="publish",
            )
    return None


def _credits(ledger: Ledger, version: PriceVersion) -> Refusal | None:
    """No lender is paid more for an hour than any borrower pays for it."""
    books = {**ledger.price_books}
    books[version.book_id] = (*books.get(version.book_id, ()), version)
    standing = [v for versions in books.values() for v in in_force(versions)]
    mine = [v for v in standing if (v.book_id, v.version) == (version.book_id, version.version)]
    for new in mine:
        for other in standing:
            for lender, borrower in ((new, other), (other, new)):
                rate = overpaid(lender, borrower)
                if rate is not None:
                    problem = (
                        f"lent at {rate.list_price} {lender.currency} in {lender.book_id} version"
                        f" {lender.version} is above what {borrower.book_id} version"
                        f" {borrower.version} charges for borrowed time"
                    )
                    return refuse(Reason.MALFORMED, field="rates", problem=problem)
    return None


def close_period(t: Transcript, command: ClosePeriod) -> Refusal | None:
    """The cutoff of a period is where this stands in the log."""
    span = Timespan(command.start, command.end)
    refusal = (
        checks.known_tenant(t.ledger, command.tenant_id)
        or checks.whole_seconds(span)
        or _zone(command.zone)
    )
    if refusal:
        return refusal
    if t.ledger.tenants[command.tenant_id].parent_id is not None:
        problem = "a billing account is a tenant that lies inside no other"
        return refuse(Reason.MALFORMED, field="tenant_id", problem=problem)
    if span.microseconds > PERIOD_SECONDS_MAX * 1_000_000:
        asked = span.microseconds // 1_000_000
        return refuse(Reason.LIMIT, limit="period_seconds_max", max=PERIOD_SECONDS_MAX, asked=asked)
    if command.end > t.now:
        return refuse(Reason.WINDOW_INVALID, problem="the period has not ended yet")
    periods = t.ledger.periods.get(command.tenant_id, ())
    for period in periods:
        if period.start == command.start:
            return _wrong_period(command, period.state.value, "close")
    if periods and periods[-1].state is not PeriodState.CLOSED:
        return _wrong_period(command, f"after one that is {periods[-1].state}", "close")
    if periods and periods[-1].end != command.start:
        problem = f"the period before ended at {periods[-1].end}: begin the next one there"
        return refuse(Reason.WINDOW_INVALID, problem=problem)
    t.write(
        PeriodClosing(
            command.tenant_id, command.start, command.end, command.zone, command.settlement
        )
    )
    return None


def _wrong_period(command: ClosePeriod | SealPeriod, state: str, verb: str) -> Refusal:
    name = f"{command.tenant_id}/{command.start}"
    return refuse(Reason.WRONG_STATE, kind="period", id=name, state=state, verb=verb)


def _zone(name: str) -> Refusal | None:
    if name and len(name) <= 64 and all(c.isascii() and (c.isalnum() or c in "/_+-") for c in name):
        return None
    return refuse(Reason.MALFORMED, field="zone", problem="must be an IANA zone's name")


def seal_period(t: Transcript, command: SealPeriod) -> Refusal | None:
    """The charges of a closing period are final, once."""
    refusal = checks.known_tenant(t.ledger, command.tenant_id) or _sealed(command)
    if refusal:
        return refusal
    periods = t.ledger.periods.get(command.tenant_id, ())
    period = next((p for p in periods if p.start == command.start), None)
    if period is None:
        name = f"{command.tenant_id}/{command.start}"
        return refuse(Reason.NOT_FOUND, kind="period", id=name)
    if period.state is not PeriodState.CLOSING:
        return _wrong_period(command, period.state.value, "seal")
    t.write(
        PeriodClosed(
            command.tenant_id,
            command.start,
            period.end,
            command.cutoff_seq,
            command.rating_version,
            command.rows,
            command.row_root,
            command.billed,
            command.currency,
        )
    )
    return None


def _sealed(command: SealPeriod) -> Refusal | None:
    refusal = (
        checks.between("cutoff_seq", command.cutoff_seq, 1, checks.MILLI_MAX)
        or checks.between("rows", command.rows, 0, checks.MILLI_MAX)
        or checks.name("rating_version", command.rating_version)
    )
    if refusal:
        return refusal
    if len(command.row_root) != ROOT_BYTES:
        return refuse(Reason.MALFORMED, field="row_root", problem=f"must be {ROOT_BYTES} bytes")
    if not _BILLED.fullmatch(command.billed) or not Decimal(command.billed).is_finite():
        return refuse(Reason.MALFORMED, field="billed", problem="must be a decimal")
    return _currency(command.currency) if command.currency else None

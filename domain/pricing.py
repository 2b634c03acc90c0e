"""Price books: what an hour of a GPU costs, by what it was to its holder, and since when.

Prices are decimal texts, exact to `PRICE_PLACES_MAX` places, never binary fractions.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow
from enum import StrEnum

from domain.ids import TenantId
from domain.timespan import FAR_FUTURE, Instant, Timespan

PRICE_PLACES_MAX = 6
PERCENT_PLACES_MAX = 4
"""A discounted price has at most 12 places, a cost (x 12 places of a GPU-hour) 24."""

EXACT = Context(prec=100, traps=[Inexact, InvalidOperation, Overflow])
"""Arithmetic on money that would rather fail than round."""

_PRICE = re.compile(rf"\d{{1,9}}(\.\d{{1,{PRICE_PLACES_MAX}}})?", re.ASCII)
_PERCENT = re.compile(rf"\d{{1,3}}(\.\d{{1,{PERCENT_PLACES_MAX}}})?", re.ASCII)


class SkuMeter(StrEnum):
    """What a GPU was to its holder while time ran; each has its own price (FOCUS `SkuMeter`)."""

    RESERVED_USED = "reserved_used"
    RESERVED_UNUSED = "reserved_unused"
    BORROWED = "borrowed"
    OVERFLOW = "overflow"
    OVERRUN = "overrun"
    SHORTAGE = "shortage"
    LENT = "lent"
    CANCELLED = "cancelled"
    SHRUNK = "shrunk"
    GIVEN_BACK = "given_back"
    PREEMPTED = "preempted"


CREDITS = frozenset({SkuMeter.SHORTAGE, SkuMeter.LENT, SkuMeter.PREEMPTED})
"""Meters that are paid to the tenant, not by it: their prices count against its charges."""

FORGONE = frozenset({SkuMeter.CANCELLED, SkuMeter.SHRUNK, SkuMeter.GIVEN_BACK, SkuMeter.PREEMPTED})
"""Meters of booked time that its holder let go of, or had to."""


class UnusedSplit(StrEnum):
    """Who pays for the unused part of a reservation."""

    HOLDER = "holder"
    MEMBERS = "members"
    """The tenants directly inside the holder, in equal parts; the holder itself has none."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What an hour of one GPU of a model costs on one meter; an empty model means any.

    With a notice it holds for what was booked (or, on a meter of forgone time, let go) at least
    so long before.
    """

    meter: SkuMeter
    list_price: str
    model: str = ""
    discount_percent: str = "0"
    notice_seconds: int = 0


@dataclass(frozen=True, slots=True)
class PriceVersion:
    """One version of a price book: its rates over a span, for some tenants or for all others."""

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
    def span(self) -> Timespan:
        """When it holds."""
        return Timespan(self.start, self.end)

    def rate_of(self, meter: SkuMeter, model: str, notice_seconds: int = 0) -> Rate | None:
        """The rate of a model on a meter at a notice; None if it is free.

        A model's own rates come before those of any model, then the longest notice that was kept.
        """
        fitting = (
            rate
            for rate in self.rates
            if rate.meter is meter
            and rate.model in {"", model}
            and rate.notice_seconds <= notice_seconds
        )
        return max(fitting, key=lambda rate: (rate.model, rate.notice_seconds), default=None)


def price_of(text: str) -> Decimal | None:
    """An amount that is not negative, from its decimal digits; None when the text is none."""
    return Decimal(text) if _PRICE.fullmatch(text) else None


def percent_of(text: str) -> Decimal | None:
    """A percentage from 0 to 100, from its decimal digits; None when the text is none."""
    percent = Decimal(text) if _PERCENT.fullmatch(text) else None
    return None if percent is None or percent > 100 else percent


def contracted(rate: Rate) -> Decimal:
    """The price of a rate after its discount, exact: a hundredth of (100 - percent) of the list."""
    paid = EXACT.subtract(Decimal(100), Decimal(rate.discount_percent))
    return EXACT.divide(EXACT.multiply(Decimal(rate.list_price), paid), Decimal(100))


def in_force(versions: Sequence[PriceVersion]) -> tuple[PriceVersion, ...]:
    """What holds of a price book: corrected versions are gone, an open end stops at the next start.

    `versions` are those of one book in the order of their numbers.
    """
    corrected = {version.corrects for version in versions}
    standing = sorted(
        (v for v in versions if v.version not in corrected), key=lambda v: (v.start, v.version)
    )
    found: list[PriceVersion] = []
    for number, version in enumerate(standing):
        later = standing[number + 1].start if number + 1 < len(standing) else FAR_FUTURE
        found.append(_until(version, min(version.end, later)))
    return tuple(found)


def _until(version: PriceVersion, end: Instant) -> PriceVersion:
    return version if version.end == end else replace(version, end=end)


def clash(mine: PriceVersion, others: Iterable[PriceVersion]) -> PriceVersion | None:
    """A version in force that would hold for the same tenants at the same instant, if any.

    A later version of the same book may cut one whose end is open.
    """
    for other in others:
        if not _share(mine.tenant_ids, other.tenant_ids) or not mine.span.overlaps(other.span):
            continue
        cuts = other.book_id == mine.book_id and other.end == FAR_FUTURE
        if cuts and mine.start > other.start:
            continue
        return other
    return None


def overpaid(lender: PriceVersion, borrower: PriceVersion) -> Rate | None:
    """A rate for lent time above what another version (or the same one) charges for borrowed time.

    Only versions in one currency that hold at one instant can be compared; in two currencies any
    price is above the other one.
    """
    if not lender.span.overlaps(borrower.span):
        return None
    for rate in lender.rates:
        if rate.meter is not SkuMeter.LENT or not contracted(rate):
            continue
        if lender.currency != borrower.currency or contracted(rate) > _debit(borrower, rate.model):
            return rate
    return None


def _debit(version: PriceVersion, model: str) -> Decimal:
    """The least that a version charges for borrowed time of a model; of every model when empty."""
    borrowed = [rate for rate in version.rates if rate.meter is SkuMeter.BORROWED]
    models = {model} if model else {"", *(rate.model for rate in borrowed)}
    notices = {0, *(rate.notice_seconds for rate in borrowed)}
    rates = (version.rate_of(SkuMeter.BORROWED, m, n) for m in models for n in notices)
    return min(contracted(rate) if rate else Decimal(0) for rate in rates)


def _share(mine: tuple[TenantId, ...], others: tuple[TenantId, ...]) -> bool:
    return bool(set(mine) & set(others)) or (not mine and not others)

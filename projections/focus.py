"""Charge rows in the FinOps Open Cost and Usage Specification 1.4 (FOCUS, ratified 2026-06-04).

Columns that never apply (commitments, taxes, pricing currencies) are left out, as FOCUS wants;
our own stand behind, alphabetically, and begin with `x_`. Values are text: decimals in full,
instants in UTC, null is None.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache

from domain.periods import Period, PeriodState
from domain.pricing import EXACT, SkuMeter
from domain.timespan import MICROSECONDS
from projections.charges import ChargeRow, RowKind
from projections.invoicing import Invoice, root_of
from projections.rating import RATING_VERSION

PROVIDER = "gpuledger"
GPU_HOURS = "GPU-Hours"

COLUMNS = (
    "AllocatedMethodId",
    "AllocatedResourceId",
    "AllocatedResourceName",
    "AllocatedTags",
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "CapacityReservationId",
    "CapacityReservationStatus",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedCost",
    "ContractedUnitPrice",
    "EffectiveCost",
    "HostProviderName",
    "InvoiceDetailId",
    "InvoiceId",
    "InvoiceIssuerName",
    "ListCost",
    "ListUnitPrice",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "RegionId",
    "RegionName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "ServiceProviderName",
    "ServiceSubcategory",
    "SkuId",
    "SkuMeter",
    "SkuPriceDetails",
    "SkuPriceId",
    "SubAccountId",
    "SubAccountName",
    "Tags",
    "x_ActivityUnknown",
    "x_BillingZone",
    "x_ChargeRecordId",
    "x_CorrectionReason",
    "x_GpuMicroseconds",
    "x_LedgerSeqFrom",
    "x_LedgerSeqTo",
    "x_PoolId",
    "x_RatingVersion",
    "x_RestatementOf",
    "x_UtilisedQuantity",
)

DECIMALS = frozenset(
    {
        "BilledCost",
        "ConsumedQuantity",
        "ContractedCost",
        "ContractedUnitPrice",
        "EffectiveCost",
        "ListCost",
        "ListUnitPrice",
        "PricingQuantity",
        "x_UtilisedQuantity",
    }
)
INTEGERS = frozenset({"x_GpuMicroseconds", "x_LedgerSeqFrom", "x_LedgerSeqTo"})
INSTANTS = frozenset(
    {"BillingPeriodEnd", "BillingPeriodStart", "ChargePeriodEnd", "ChargePeriodStart"}
)

PERIOD_COLUMNS = (
    "BillingPeriodCreated",
    "BillingPeriodEnd",
    "BillingPeriodLastUpdated",
    "BillingPeriodStart",
    "BillingPeriodStatus",
    "InvoiceIssuerName",
)

_METERS = {
    SkuMeter.RESERVED_USED: ("Reserved GPU Time", "Standard", "reserved GPUs, used"),
    SkuMeter.RESERVED_UNUSED: ("Reserved GPU Time", "Standard", "reserved GPUs, unused"),
    SkuMeter.BORROWED: ("Borrowed GPU Time", "Dynamic", "GPUs borrowed from idle quota"),
    SkuMeter.OVERFLOW: ("Overflow GPU Time", "Dynamic", "GPUs beyond quota"),
    SkuMeter.OVERRUN: ("Overrun GPU Time", "Dynamic", "GPUs held after the reservation's end"),
    SkuMeter.SHORTAGE: ("Missing GPU Time", "Standard", "credit for GPUs promised and missing"),
    SkuMeter.LENT: ("Lent GPU Time", "Dynamic", "credit for idle quota that others borrowed"),
    SkuMeter.CANCELLED: ("Cancelled GPU Time", "Other", "GPUs cancelled, not booked anew"),
    SkuMeter.SHRUNK: ("Shrunk GPU Time", "Other", "GPUs let go of, not booked anew"),
    SkuMeter.GIVEN_BACK: ("Given Back GPU Time", "Other", "GPUs given back, not booked anew"),
    SkuMeter.PREEMPTED: ("Preempted GPU Time", "Other", "credit for GPUs that had to give way"),
}
_RESERVED = {SkuMeter.RESERVED_USED: "Used", SkuMeter.RESERVED_UNUSED: "Unused"}

ALIKE_MAX = 256
"""How many kinds of row are remembered while rows of an invoice are made."""

Row = dict[str, str | None]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(4_096)
def instant(at: int) -> str:
    """An instant as FOCUS has it: whole seconds of UTC."""
    moment = _EPOCH + timedelta(microseconds=at - at % MICROSECONDS)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


@lru_cache(65_536)
def decimal(amount: Decimal) -> str:
    """A decimal in full, without an exponent and without zeros that say nothing."""
    text = f"{amount:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def focus_rows(invoice: Invoice) -> Iterator[Row]:
    """The rows of an invoice by the hour, in their order."""
    period = invoice.period
    shared: Row = {
        "BillingAccountId": period.tenant_id,
        "BillingAccountName": period.tenant_id,
        "BillingPeriodEnd": instant(period.end),
        "BillingPeriodStart": instant(period.start),
        "HostProviderName": PROVIDER,
        "InvoiceIssuerName": PROVIDER,
        "InvoiceId": invoice.id or None,
        "ServiceCategory": "Compute",
        "ServiceName": "GPU reservations",
        "ServiceProviderName": PROVIDER,
        "ServiceSubcategory": "Other (Compute)",
        "ChargeFrequency": "Usage-Based",
        "PricingUnit": GPU_HOURS,
        "x_BillingZone": period.zone,
        "x_RatingVersion": RATING_VERSION,
    }
    empty: Row = {**dict.fromkeys(COLUMNS), **shared}
    alike: dict[tuple[object, ...], Row] = {}
    for row in invoice.rows:
        key = row.charge.key
        which = (*key[:5], key.sku_price_id, key.split_from, row.kind)
        had = alike.get(which)
        if had is None:
            # Rows come by reservation, so those that are alike lie together.
            if len(alike) >= ALIKE_MAX:
                alike.clear()
            had = alike[which] = {**empty, **_alike(row, invoice)}
        is_utilised = key.meter is SkuMeter.RESERVED_USED and had["x_ActivityUnknown"] == "false"
        yield {**had, **_own(row, is_utilised=is_utilised)}


def _own(row: ChargeRow, *, is_utilised: bool) -> Row:
    """What is a row's own: its hour, its amounts, its id."""
    key, credit = row.charge.key, row.charge.is_credit
    contracted, billed = decimal(row.contracted_cost), decimal(row.billed)
    quantity = decimal(row.quantity)
    values: Row = {
        "BilledCost": billed,
        "ChargePeriodEnd": instant(key.end),
        "ChargePeriodStart": instant(key.start),
        "ContractedCost": contracted,
        "EffectiveCost": billed if credit else contracted,
        "ListCost": decimal(row.list_cost),
        "PricingQuantity": quantity,
        "x_ChargeRecordId": _uuid(row.id),
        "x_GpuMicroseconds": str(row.gpu_microseconds),
    }
    if not credit:
        values["ConsumedQuantity"] = quantity
    if is_utilised:
        values["x_UtilisedQuantity"] = quantity
    if row.kind is not RowKind.ORIGINAL:
        values["x_RestatementOf"] = _uuid(row.original_id)
    return values


def _alike(row: ChargeRow, invoice: Invoice) -> Row:
    """What all rows of one kind for one reservation at one price say."""
    key, price, credit = row.charge.key, row.charge.price, row.charge.is_credit
    sku_meter, category, words = _METERS[key.meter]
    site = invoice.rated.terms.sites.get(key.pool_id) or None
    values: Row = {
        "BillingCurrency": price.currency,
        "ChargeCategory": "Credit" if credit else "Usage",
        "ChargeClass": None if row.kind is RowKind.ORIGINAL else "Correction",
        "ChargeDescription": f"{price.model or 'any model'}: {words}",
        "ConsumedUnit": None if credit else GPU_HOURS,
        "ContractedUnitPrice": decimal(price.contracted_price),
        "ListUnitPrice": decimal(price.list_price),
        "PricingCategory": category,
        "RegionId": site,
        "RegionName": site,
        "SkuId": price.sku_id,
        "SkuMeter": sku_meter,
        "SkuPriceId": price.sku_price_id,
        "SkuPriceDetails": _json((("x_Book", price.book_id), ("x_Version", price.version))),
        "SubAccountId": key.tenant_id,
        "SubAccountName": key.tenant_id,
        "x_PoolId": key.pool_id,
    }
    if key.reservation_id:
        booking = invoice.rated.bookings[key.reservation_id]
        values |= {
            "ResourceId": key.reservation_id,
            "ResourceName": key.reservation_id,
            "ResourceType": "Reservation",
            "Tags": _json(tuple(booking.tags.items())),
            "x_ActivityUnknown": "false" if booking.is_observed else "true",
            "x_LedgerSeqFrom": str(booking.seq_from),
            "x_LedgerSeqTo": str(booking.seq_to),
        }
    if key.meter in _RESERVED:
        values["CapacityReservationId"] = key.reservation_id
        values["CapacityReservationStatus"] = _RESERVED[key.meter]
    if invoice.id:
        values["InvoiceDetailId"] = "/".join(map(str, (invoice.id, *row.line[1:4])))
    if row.kind is not RowKind.ORIGINAL:
        values["x_CorrectionReason"] = "late-fact-or-price"
    if key.split_from:
        values |= {
            "AllocatedMethodId": "equal-parts-of-members",
            "AllocatedResourceId": key.reservation_id,
            "AllocatedResourceName": key.reservation_id,
        }
    return values


def _uuid(digits: str) -> str:
    """32 hex digits as people write a UUID."""
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return "-".join(parts)


@lru_cache(4_096)
def _json(values: tuple[tuple[str, str | int], ...]) -> str:
    return json.dumps(dict(values), sort_keys=True, separators=(",", ":"))


def by_day(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows of hours as rows of UTC days: whatever differs in nothing but its hours is one.

    Costs, quantities and coins are sums, so every identity of FOCUS still holds. Ids are those of
    the first hour, and the log's positions span all of them.
    """
    summed = ("BilledCost", "ConsumedQuantity", "ContractedCost", "EffectiveCost", "ListCost")
    added = (*summed, "PricingQuantity", "x_UtilisedQuantity")
    hidden = {*added, "ChargePeriodStart", "ChargePeriodEnd", "x_ChargeRecordId"}
    hidden |= {"x_GpuMicroseconds", "x_LedgerSeqFrom", "x_LedgerSeqTo", "x_RestatementOf"}
    alike = [name for name in COLUMNS if name not in hidden]
    days: dict[tuple[str | None, ...], Row] = {}
    for row in rows:
        start = row["ChargePeriodStart"] or ""
        kind = (row["PricingQuantity"] or "").startswith("-")
        key = (start[:10], str(kind), *(row[name] for name in alike))
        day = days.get(key)
        if day is None:
            days[key] = dict(row)
            continue
        for name in added:
            if row[name] is not None:
                total = EXACT.add(Decimal(day[name] or 0), Decimal(row[name] or 0))
                day[name] = decimal(total)
        day["x_GpuMicroseconds"] = str(
            int(day["x_GpuMicroseconds"] or 0) + int(row["x_GpuMicroseconds"] or 0)
        )
        day["ChargePeriodEnd"] = max(day["ChargePeriodEnd"] or "", row["ChargePeriodEnd"] or "")
        day["ChargePeriodStart"] = min(day["ChargePeriodStart"] or "", start)
        if row["ResourceId"] is not None:
            first, last = int(row["x_LedgerSeqFrom"] or 0), int(row["x_LedgerSeqTo"] or 0)
            day["x_LedgerSeqFrom"] = str(min(int(day["x_LedgerSeqFrom"] or 0), first))
            day["x_LedgerSeqTo"] = str(max(int(day["x_LedgerSeqTo"] or 0), last))
    yield from days.values()


def canonical(row: Row) -> bytes:
    """The bytes of a row that a closed period's root is made of: JSON, keys sorted, no spaces."""
    return json.dumps(row, sort_keys=True, separators=(",", ":")).encode()


def row_root(invoice: Invoice) -> bytes:
    """The root of a Merkle tree over an invoice's rows by the hour, in their order."""
    return root_of(canonical(row) for row in focus_rows(invoice))


def period_row(period: Period, *, created: int, updated: int) -> Row:
    """A row of the Billing Period dataset; an open and a closing period are both open."""
    status = "Closed" if period.state is PeriodState.CLOSED else "Open"
    return {
        "BillingPeriodCreated": instant(created),
        "BillingPeriodEnd": instant(period.end),
        "BillingPeriodLastUpdated": instant(updated),
        "BillingPeriodStart": instant(period.start),
        "BillingPeriodStatus": status,
        "InvoiceIssuerName": PROVIDER,
    }

"""A statement: one period of one account as a page for people, with a chart of its spend by day."""

from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, select_autoescape

from domain.pricing import SkuMeter
from projections.charges import ChargeRow, RowKind
from projections.closing import billed
from projections.focus import decimal, instant, row_root
from projections.invoicing import Invoice
from projections.rating import RATING_VERSION

CHART_WIDTH, CHART_HEIGHT = 900, 200
TICKS_MAX = 10
COLOURS = {
    SkuMeter.RESERVED_USED: "#0969da",
    SkuMeter.RESERVED_UNUSED: "#a5c8f0",
    SkuMeter.BORROWED: "#1a7f37",
    SkuMeter.OVERFLOW: "#bf8700",
    SkuMeter.OVERRUN: "#cf222e",
    SkuMeter.SHORTAGE: "#8250df",
    SkuMeter.LENT: "#bf3989",
    SkuMeter.CANCELLED: "#6e7781",
    SkuMeter.SHRUNK: "#8c959f",
    SkuMeter.GIVEN_BACK: "#afb8c1",
    SkuMeter.PREEMPTED: "#a475f9",
}
DAY_MICROSECONDS = 86_400_000_000

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=select_autoescape(),
    trim_blocks=True,
)


def statement(invoice: Invoice) -> str:
    """The page; it needs nothing from outside. Raises `MixedCurrencies`."""
    total, currency = billed(invoice)
    period = invoice.period
    lines = _lines(invoice.rows)
    hours = sum((row.quantity for row in invoice.rows), Decimal(0))
    return _TEMPLATES.get_template("statement.html").render(
        account=period.tenant_id,
        period=f"{instant(period.start)} to {instant(period.end)}",
        zone=period.zone,
        state=period.state.value,
        settlement=period.settlement.value,
        invoice=invoice.id,
        chart=_chart(invoice.rows),
        lines=lines,
        currency=currency,
        hours=f"{hours:.2f}",
        billed=decimal(total),
        corrections=sum(row.kind is not RowKind.ORIGINAL for row in invoice.rows),
        rows=len(invoice.rows),
        root=row_root(invoice).hex(),
        rating=RATING_VERSION,
        seq=invoice.rated.seq,
    )


def _lines(rows: tuple[ChargeRow, ...]) -> list[dict[str, str]]:
    """What each tenant had on each meter, in the order of their names."""
    sums: defaultdict[tuple[str, str, str], list[Decimal]] = defaultdict(lambda: [Decimal(0)] * 3)
    for row in rows:
        key = (row.charge.key.tenant_id, row.charge.key.meter.value, row.charge.key.model)
        amounts = (row.quantity, row.list_cost, row.billed)
        sums[key] = [had + more for had, more in zip(sums[key], amounts, strict=True)]
    return [
        {
            "tenant": tenant,
            "meter": meter.replace("_", " "),
            "model": model or "any",
            "hours": f"{hours:.2f}",
            "list": f"{listed:.2f}",
            "billed": decimal(coins),
        }
        for (tenant, meter, model), (hours, listed, coins) in sorted(sums.items())
    ]


def _chart(rows: tuple[ChargeRow, ...]) -> dict[str, Any]:
    """Stacked bars, one for each UTC day; credits and reversals count against their day."""
    days: defaultdict[int, defaultdict[SkuMeter, Decimal]] = defaultdict(
        lambda: defaultdict(Decimal)
    )
    for row in rows:
        key = row.charge.key
        days[key.start // DAY_MICROSECONDS][key.meter] += row.contracted_cost
    first, last = min(days, default=0), max(days, default=0)
    width = CHART_WIDTH / (last - first + 1)
    highest = max(
        (sum((v for v in of_day.values() if v > 0), Decimal(0)) for of_day in days.values()),
        default=Decimal(0),
    )
    bars: list[dict[str, Any]] = []
    for day, of_day in sorted(days.items()):
        top = float(CHART_HEIGHT)
        for meter, amount in sorted(of_day.items()):
            height = float(max(amount, Decimal(0)) / highest) * CHART_HEIGHT if highest else 0.0
            top -= height
            bars.append(
                {
                    "x": round((day - first) * width, 2),
                    "y": round(top, 2),
                    "width": round(width * 0.9, 2),
                    "height": round(height, 2),
                    "colour": COLOURS[meter],
                    "title": f"{_day(day)} {meter.value}: {amount:.2f}",
                }
            )
    every = max(1, -(-(last - first + 1) // TICKS_MAX))
    return {
        "width": CHART_WIDTH,
        "height": CHART_HEIGHT,
        "bars": bars,
        "ticks": [
            {"x": round((day - first) * width, 2), "text": _day(day)}
            for day in range(first, last + 1, every)
            if days
        ],
        "meters": [
            {"name": meter.value.replace("_", " "), "colour": COLOURS[meter]}
            for meter in sorted({meter for of_day in days.values() for meter in of_day})
        ],
    }


def _day(number: int) -> str:
    return instant(number * DAY_MICROSECONDS)[:10]

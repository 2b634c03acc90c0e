"""Verbs on invoices of providers: take one in, compare it with the overflow that there was."""

import csv
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any

import typer

from connectors.cli.charging import From, dsn_of
from connectors.cli.console import REFUSED, api, fail, refusals_told, tell

COLUMNS = ("model", "gpu_hours", "amount")


def import_invoice(
    file: Annotated[Path, typer.Argument(help="CSV with the columns model, gpu_hours, amount")],
    provider: Annotated[str, typer.Option(help="whose invoice it is")],
    invoice: Annotated[str, typer.Option(help="what the provider calls it")],
    pool: Annotated[str, typer.Option(help="whose overflow it is for")],
    start: Annotated[str, typer.Option("--from", help="RFC 3339, a whole hour of UTC")],
    end: Annotated[str, typer.Option("--to", help="RFC 3339, a whole hour of UTC")],
    currency: Annotated[str, typer.Option(help="ISO 4217")] = "EUR",
    replaces: Annotated[str, typer.Option(help="the invoice whose place it takes")] = "",
) -> None:
    """Take in what a provider wants for overflow, once."""
    try:
        with file.open(newline="") as text:
            lines = list(csv.DictReader(text))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        fail(REFUSED, f"{file}: {error}")
        return
    if not lines or any(set(line) != set(COLUMNS) or None in line.values() for line in lines):
        fail(REFUSED, f"{file}: wants a line at least, and the columns {', '.join(COLUMNS)}")
    body: dict[str, Any] = {"provider": provider, "invoice_id": invoice, "pool_id": pool}
    body |= {"start": start, "end": end, "currency": currency, "replaces": replaces}
    with refusals_told():
        outcome = api().post("/v1/provider-invoices", body | {"lines": lines})
    told = {"provider": provider, "invoice": invoice, "lines": len(lines)}
    tell({"imported": told, "outcome": outcome}, [told], tuple(told))


def invoices(
    tolerance: Annotated[str, typer.Option(help="GPU-hours a line may differ")] = "0",
    data: From = None,
) -> None:
    """Each provider's invoice beside the overflow of its span; ends with 1 where one differs."""
    from connectors.wiring.charging import compared, ratings_of
    from projections.focus import decimal

    try:
        most = Decimal(tolerance)
    except InvalidOperation as error:
        raise typer.BadParameter(f"{tolerance!r} is no number of GPU-hours") from error
    if not most.is_finite() or most < 0:
        raise typer.BadParameter("the tolerance is not negative")
    with dsn_of(data) as dsn:
        found = list(compared(ratings_of(dsn)))
    rows = [
        {
            "provider": each.provider,
            "invoice": each.invoice_id,
            "pool": each.pool_id,
            "model": each.model,
            "invoiced_hours": decimal(each.invoiced_hours),
            "overflow_hours": decimal(each.overflow_hours),
            "difference": decimal(each.difference),
            "amount": f"{decimal(each.amount)} {each.currency}",
            "charged": ", ".join(f"{decimal(v)} {k}" for k, v in sorted(each.charged.items())),
            "verdict": "holds" if abs(each.difference) <= most else "DIFFERS",
        }
        for each in found
    ]
    columns = tuple(rows[0]) if rows else ("provider", "invoice")
    tell({"invoices": rows}, rows, columns)
    if any(row["verdict"] == "DIFFERS" for row in rows):
        raise typer.Exit(REFUSED)

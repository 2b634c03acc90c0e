"""Verbs on price books."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from connectors.cli.console import REFUSED, api, command, duration, fail, group, refusals_told, tell

price, price_verb = group("price", "What an hour of a GPU costs: list, publish")

METERS = (
    "reserved_used, reserved_unused, borrowed, overflow, overrun, shortage, lent,"
    " cancelled, shrunk, given_back, preempted"
)


@price_verb("list")
def list_prices() -> None:
    """Every version of every price book that you may see."""
    with refusals_told():
        content = api().get("/v1/price-books")
    rows = [
        {
            "book": f"{book['book_id']}:{book['version']}",
            **{name: book[name] for name in ("start", "end", "currency")},
            "tenants": ", ".join(book["tenant_ids"]) or "all others",
            "meter": rate["meter"],
            "model": rate["model"] or "any",
            "notice": f"{rate['notice_seconds']} s",
            "list": rate["list_price"],
            "discount": f"{rate['discount_percent']} %",
        }
        for book in content["price_books"]
        for rate in book["rates"]
    ]
    columns = (
        "book",
        "start",
        "end",
        "currency",
        "tenants",
        "meter",
        "model",
        "notice",
        "list",
        "discount",
    )
    tell(content, rows, columns)


@price_verb("publish")
def publish(
    book: Annotated[str, typer.Argument(help="the book's name")],
    rate: Annotated[
        list[str] | None,
        typer.Option(
            help=f"METER[@MODEL][+NOTICE]=PRICE, per GPU-hour, such as cancelled+2d=1.25; meters: {METERS}"
        ),
    ] = None,
    currency: Annotated[str, typer.Option(help="ISO 4217")] = "EUR",
    discount: Annotated[str, typer.Option(help="percent off every rate given here")] = "0",
    start: Annotated[str, typer.Option("--from", help="RFC 3339")] = "2020-01-01T00:00:00Z",
    end: Annotated[str, typer.Option("--to", help="RFC 3339; open when not given")] = "",
    tenant: Annotated[list[str] | None, typer.Option(help="only for these")] = None,
    corrects: Annotated[int, typer.Option(help="the version whose place it takes")] = 0,
    unused_split: Annotated[str, typer.Option(help="holder or members")] = "holder",
    file: Annotated[Path | None, typer.Option(help="the whole command as YAML or JSON")] = None,
) -> None:
    """Publish a version of a price book, or correct one."""
    body: dict[str, Any] = {
        "book_id": book,
        "currency": currency,
        "start": start,
        "end": end or None,
        "rates": [_rate(text, discount) for text in rate or ()],
        "tenant_ids": tenant or [],
        "unused_split": unused_split,
        "corrects": corrects or None,
    }
    if file is not None:
        import yaml

        try:
            body |= yaml.safe_load(file.read_text())
        except (OSError, yaml.YAMLError, TypeError, ValueError) as error:
            fail(REFUSED, f"{file}: {error}")
        body = json.loads(json.dumps(body, default=str))
    command("/v1/price-books", body)


def _rate(text: str, discount: str) -> dict[str, str | int]:
    """`cancelled@H100+2d=1.25` as a rate."""
    what, _, price_text = text.partition("=")
    what, _, notice = what.partition("+")
    meter, _, model = what.partition("@")
    if not price_text:
        raise typer.BadParameter(f"{text!r} is no rate; write overflow=3.10 or overflow@H100=3.10")
    return {
        "meter": meter,
        "model": model,
        "list_price": price_text,
        "discount_percent": discount,
        "notice_seconds": duration(notice) if notice else 0,
    }

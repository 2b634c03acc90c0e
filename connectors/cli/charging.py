"""Verbs on money: what was used costs what, as files that finance loads, and periods that close."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from connectors.cli.console import (
    NOT_REACHABLE,
    REFUSED,
    USED_WRONGLY,
    api,
    fail,
    group,
    options,
    refusals_told,
    tell,
)
from connectors.cli.database import database
from connectors.cli.tracing import export_verb

charges, charges_verb = group("charges", "What usage costs: show, export, reconcile, close")

Account = Annotated[str, typer.Option("--account", help="one billing account; all when not given")]
From = Annotated[Path | None, typer.Option("--data", help="a stopped data folder")]


@contextmanager
def dsn_of(data: Path | None) -> Iterator[str]:
    """The database of the service that runs here, or of a stopped data folder."""
    options.data = data or options.data
    with database() as dsn:
        yield dsn


@charges_verb("show")
def show(account: Account = "", data: From = None) -> None:
    """What each account's periods come to, by tenant and by what was used."""
    from connectors.wiring.charging import all_invoices, ratings_of
    from projections.focus import decimal, instant

    sums: dict[tuple[str, ...], list[Any]] = {}
    with dsn_of(data) as dsn:
        for invoice in all_invoices(ratings_of(dsn), account):
            for row in invoice.rows:
                key = (
                    invoice.period.tenant_id,
                    instant(invoice.period.start),
                    invoice.period.state.value,
                    row.charge.key.tenant_id,
                    row.charge.price.sku_id,
                    row.charge.price.currency,
                )
                amounts = sums.setdefault(key, [0, 0])
                amounts[0] += row.quantity
                amounts[1] += row.billed
    columns = ("account", "period", "state", "tenant", "sku", "currency", "gpu_hours", "billed")
    rows = [
        dict(zip(columns, (*key, decimal(hours), decimal(billed)), strict=True))
        for key, (hours, billed) in sorted(sums.items())
    ]
    tell({"charges": rows}, rows, columns)


@export_verb("charges")
@charges_verb("export")
def export(
    to: Annotated[Path, typer.Option("--out", help="the file")],
    form: Annotated[str, typer.Option("--format", help="csv, jsonl or parquet")] = "csv",
    grain: Annotated[str, typer.Option(help="hour or day")] = "hour",
    parts: Annotated[
        bool, typer.Option("--parts", help="--out is a folder: Parquet by pool, period, account")
    ] = False,
    processes: Annotated[
        int, typer.Option(min=0, help="that rate the parts; 0 takes one a core")
    ] = 0,
    account: Account = "",
    data: From = None,
) -> None:
    """Charge rows in FOCUS 1.4."""
    from connectors.exports.charges import WRITERS
    from connectors.exports.parts import TooManyParts, write_parts
    from connectors.wiring.charging import all_invoices, ratings_of
    from projections.focus import by_day, focus_rows

    if form not in WRITERS or grain not in {"hour", "day"}:
        raise typer.BadParameter("write --format csv, jsonl or parquet, --grain hour or day")
    if parts and to.exists() and (not to.is_dir() or any(to.iterdir())):
        fail(REFUSED, f"{to} is there already", "name a folder that is empty, or none")
    with dsn_of(data) as dsn:
        if parts:
            cores = processes or os.cpu_count() or 1
            try:
                count = write_parts(
                    to, ratings_of(dsn), processes=cores, account=account, grain=grain
                )
            except (OSError, TooManyParts) as error:
                fail(REFUSED, f"{to}: {error}")
            tell({"rows": count, "folder": str(to)}, [{"rows": count}], ("rows",))
            return
        found = (
            row
            for invoice in all_invoices(ratings_of(dsn), account)
            for row in (focus_rows(invoice) if grain == "hour" else by_day(focus_rows(invoice)))
        )
        count = WRITERS[form](to, found)
    tell({"rows": count, "file": str(to)}, [{"rows": count, "file": str(to)}], ("rows", "file"))


@charges_verb("statement")
def statement(
    account: Annotated[str, typer.Argument(help="a billing account")],
    to: Annotated[Path, typer.Option("--out", help="the file, HTML")],
    start: Annotated[
        str, typer.Option("--from", help="the period's first instant; the newest when not given")
    ] = "",
    data: From = None,
) -> None:
    """One period of one account as a page with a chart of its spend by day."""
    from connectors.exports.statement import statement as page
    from connectors.wiring.charging import all_invoices, ratings_of
    from projections.closing import MixedCurrencies
    from schemas.json_form import instant_of

    with dsn_of(data) as dsn:
        found = [
            invoice
            for invoice in all_invoices(ratings_of(dsn), account)
            if not start or invoice.period.start == instant_of(start)
        ]
        if not found:
            fail(REFUSED, f"{account} has no such period", "gpuledger charges show")
        try:
            to.write_text(page(found[-1]))
        except (MixedCurrencies, OSError) as error:
            fail(REFUSED, f"no statement: {error}")
    told = {"file": str(to), "rows": len(found[-1].rows)}
    tell(told, [told], ("file", "rows"))


@charges_verb("reconcile")
def reconcile(
    file: Annotated[
        Path | None, typer.Option(help="rows by the hour, as exported, to compare one by one")
    ] = None,
    kept: Annotated[
        bool, typer.Option("--kept", help="compare the rows that `charges load` keeps")
    ] = False,
    parts: Annotated[
        Path | None, typer.Option(help="a folder of `charges export --parts`, by the hour")
    ] = None,
    data: From = None,
) -> None:
    """Prove that rows are what a fresh rating of the log says, and that pool-hours sum to capacity."""
    from connectors.exports.charges import read_file
    from connectors.exports.parts import TooManyParts, reconcile_parts
    from connectors.wiring.charging import kept_rows, ratings_of
    from projections import reconciling

    with dsn_of(data) as dsn:
        try:
            rows = read_file(file) if file else kept_rows(dsn) if kept else None
            ratings = ratings_of(dsn)
            verdict = reconciling.reconcile(ratings, rows)
            if parts:
                cores = os.cpu_count() or 1
                verdict.add(reconcile_parts(parts, ratings, processes=cores))
        except (OSError, ValueError, TooManyParts) as error:
            fail(REFUSED, f"{file or parts}: {error}")
            return
    told = [
        *({"verdict": "holds", "what": what} for what in verdict.checked if verdict.holds),
        *({"verdict": "checked", "what": what} for what in verdict.checked if not verdict.holds),
        *({"verdict": "DIFFERS", "what": what} for what in verdict.differences),
    ]
    title = f"{verdict.rows} rows, {verdict.count} differences"
    tell(asdict(verdict) | {"holds": verdict.holds}, told, ("verdict", "what"), title)
    if not verdict.holds:
        raise typer.Exit(REFUSED)


@charges_verb("close")
def close(
    account: Annotated[str, typer.Argument(help="a tenant that lies inside no other")],
    month: Annotated[str, typer.Option(help="such as 2026-11; or --from and --to")] = "",
    start: Annotated[str, typer.Option("--from", help="RFC 3339")] = "",
    end: Annotated[str, typer.Option("--to", help="RFC 3339")] = "",
    zone: Annotated[str, typer.Option(help="IANA zone of the month")] = "UTC",
    showback: Annotated[bool, typer.Option(help="no money changes hands")] = False,
) -> None:
    """Close a period: fix its cutoff, rate it, reconcile it, and seal its rows for good."""
    from connectors.wiring.charging import closing_invoice, open_hours, ratings_of
    from projections import reconciling
    from projections.closing import MixedCurrencies, seal_of
    from schemas.json_form import instant_of, render

    if month:
        start, end = _month(month, zone)
    if not start or not end:
        raise typer.BadParameter("name a period: --month 2026-11, or --from and --to")
    with dsn_of(None) as dsn, refusals_told():
        ratings = ratings_of(dsn)
        verdict = reconciling.reconcile(ratings)
        if not verdict.holds:
            fail(REFUSED, f"not closed: {verdict.differences[0]}", "gpuledger charges reconcile")
        for part in open_hours(ratings, instant_of(end)):
            api().post("/v1/pool-hours", render(part), "")
        at = instant_of(start)
        if closing_invoice(ratings_of(dsn), account, at) is None:
            settlement = "showback" if showback else "chargeback"
            body = {"tenant_id": account, "start": start, "end": end, "zone": zone}
            api().post("/v1/periods", body | {"settlement": settlement}, "")
        invoice = closing_invoice(ratings_of(dsn), account, at)
        assert invoice is not None, "the period is closing now"
        try:
            seal = seal_of(invoice)
        except MixedCurrencies as error:
            fail(REFUSED, f"not sealed: two currencies hold for {account}: {error}")
            return
        outcome = api().post("/v1/periods/seal", render(seal), "")
    sealed = {"rows": seal.rows, "billed": f"{seal.billed} {seal.currency}"}
    sealed |= {"row_root": seal.row_root.hex(), "cutoff_seq": seal.cutoff_seq}
    tell({"sealed": sealed, "outcome": outcome}, [sealed], tuple(sealed))


@charges_verb("load")
def load(data: From = None) -> None:
    """Keep the rows of closed periods, and those of open ones until the next load, for SQL."""
    from connectors.postgres.charges import RowsDiffer
    from connectors.wiring import charging

    with dsn_of(data) as dsn:
        try:
            closed, still_open = charging.load(dsn, charging.ratings_of(dsn))
        except RowsDiffer as error:
            fail(REFUSED, f"not kept: {error}", "gpuledger charges reconcile")
            return
    told = {"closed_rows_added": closed, "open_rows": still_open}
    tell(told, [told], tuple(told))


@charges_verb("publish")
def publish(data: From = None) -> None:
    """Load, and tell the rows of closed periods on Kafka's charges.v1: each once, in order."""
    from kafka.errors import KafkaError

    from connectors.postgres.charges import RowsDiffer
    from connectors.wiring import charging, publishing

    with dsn_of(data) as dsn:
        try:
            settings = publishing.settings_from()
            closed, _ = charging.load(dsn, charging.ratings_of(dsn))
            sent = publishing.publish(dsn, settings)
        except RowsDiffer as error:
            fail(REFUSED, f"not kept: {error}", "gpuledger charges reconcile")
        except publishing.KafkaNotConfigured as error:
            fail(USED_WRONGLY, str(error))
        except (publishing.ChargesDiffer, publishing.BadRecord, publishing.TopicsUnsafe) as error:
            fail(REFUSED, str(error))
        except KafkaError as error:
            fail(NOT_REACHABLE, f"Kafka says: {error}", "is KAFKA_BOOTSTRAP_SERVERS right?")
    told = {"closed_rows_added": closed, "rows_published": sent}
    tell(told, [told], tuple(told))


@charges_verb("close-hours")
def close_hours(
    pool: Annotated[str, typer.Argument(help="a pool; all when not given")] = "",
    until: Annotated[str, typer.Option("--to", help="RFC 3339; now when not given")] = "",
) -> None:
    """Close pool-hours that are over: each must sum to its capacity, to the GPU-microsecond."""
    from connectors.wiring.charging import open_hours, ratings_of
    from schemas.json_form import instant_of, instant_text, render

    closed: list[dict[str, Any]] = []
    with dsn_of(None) as dsn, refusals_told():
        ratings = ratings_of(dsn)
        end = instant_of(until) if until else ratings.books(ratings.seq)[0].last
        for part in open_hours(ratings, end, pool):
            api().post("/v1/pool-hours", render(part), "")
            bounds = {
                "first": instant_text(part.hours[0].start),
                "last": instant_text(part.hours[-1].start),
            }
            closed.append({"pool": part.pool_id, "hours": len(part.hours), **bounds})
    tell({"closed": closed}, closed, ("pool", "hours", "first", "last"))


@charges_verb("hours")
def hours(
    start: Annotated[str, typer.Option("--from", help="RFC 3339; an hour ago when not given")] = "",
    end: Annotated[str, typer.Option("--to", help="RFC 3339; 23 hours on when not given")] = "",
) -> None:
    """Closed pool-hours: what each state came to, and up to which position it was read."""
    with refusals_told():
        span = {name: text for name, text in (("from", start), ("to", end)) if text}
        content = api().get("/v1/pool-hours", **span)
    columns = ("pool_id", "start", "state", "gpu_microseconds", "cutoff_seq", "seq")
    tell(content, content["pool_hours"], columns)


def _month(text: str, zone: str) -> tuple[str, str]:
    """The bounds of a month in a zone, in UTC."""
    try:
        first = datetime.strptime(text, "%Y-%m").replace(tzinfo=ZoneInfo(zone))
    except (ValueError, ZoneInfoNotFoundError) as error:
        raise typer.BadParameter(f"{text!r} in {zone!r} is no month: {error}") from error
    year, month = divmod(first.year * 12 + first.month, 12)
    after = first.replace(year=year, month=month + 1)
    return first.astimezone(UTC).isoformat(), after.astimezone(UTC).isoformat()

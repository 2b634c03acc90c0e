"""`trace run` and `export`."""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from connectors.cli.console import (
    NOT_REACHABLE,
    REFUSED,
    err,
    fail,
    folder,
    group,
    options,
    out,
    tell,
)
from connectors.cli.database import database
from connectors.embedded.folder import DataFolder, FolderRefused
from connectors.running.files import Service, forget_service, write_service
from connectors.traces.chart import svg as chart
from connectors.traces.jobs import OnError, Trace, TraceNode, TraceRefused
from connectors.traces.load import shape
from connectors.traces.reading import fleet_of, read_jobs, read_nodes, read_pods, read_swf
from domain.timespan import Instant
from schemas.json_form import instant_of

trace, trace_verb = group("trace", "Real traces through the whole service")
export, export_verb = group("export", "Read models as files")

EPOCH = "2024-01-01T00:00:00Z"


@trace_verb("run")
def run(
    nodes: Annotated[Path | None, typer.Option(help="nodes as CSV (openb or plain)")] = None,
    pods: Annotated[Path | None, typer.Option(help="pods as CSV (openb)")] = None,
    swf: Annotated[Path | None, typer.Option(help="a log in SWF")] = None,
    jobs: Annotated[Path | None, typer.Option(help="jobs as CSV (Philly or plain)")] = None,
    fleet: Annotated[str, typer.Option(help="nodes x GPUs, such as 552x8")] = "",
    load: Annotated[float | None, typer.Option(help="squeeze and thin to this load")] = None,
    seed: Annotated[int, typer.Option(help="of the simulated hardware")] = 0,
    data: Annotated[
        Path | None, typer.Option(help="a fresh data folder; a temporary one if none")
    ] = None,
    dsn: Annotated[str, typer.Option(help="an empty database of yours")] = "",
    report: Annotated[Path | None, typer.Option(help="write the report as JSON")] = None,
    svg: Annotated[Path | None, typer.Option(help="write a chart of utilisation")] = None,
    epoch: Annotated[str, typer.Option(help="the instant of the trace's second 0")] = EPOCH,
    on_error: Annotated[OnError, typer.Option(help="what a malformed row does")] = OnError.STOP,
    plan: Annotated[
        bool, typer.Option("--plan", help="plan all of it at once, too, with a certified bound")
    ] = False,
) -> None:
    """Book a real trace through commands, events, hardware, usage, and a replay."""
    try:
        read, machines = _read(nodes, pods, swf, jobs, fleet, on_error)
    except (TraceRefused, OSError) as error:
        fail(REFUSED, str(error))
        return
    if not read.jobs:
        fail(REFUSED, "the trace has no job with GPUs")
    read, machines = shape(read, machines, load)
    temporary = None if data or dsn else tempfile.mkdtemp(prefix="gpuledger-trace-")
    where = data or Path(temporary or folder())
    try:
        _book(where, dsn, read, machines, instant_of(epoch), seed, report, svg, plan)
    finally:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)


def _read(
    nodes: Path | None,
    pods: Path | None,
    swf: Path | None,
    jobs: Path | None,
    fleet: str,
    on_error: OnError,
) -> tuple[Trace, list[TraceNode]]:
    if sum(given is not None for given in (pods, swf, jobs)) != 1:
        raise typer.BadParameter("name one of --pods, --swf and --jobs")
    machines = read_nodes(nodes) if nodes else fleet_of(fleet or "552x8")
    if pods:
        return read_pods(pods, on_error), machines
    if swf:
        return read_swf(swf, on_error), machines
    assert jobs is not None
    return read_jobs(jobs, on_error), machines


def _book(
    where: Path,
    dsn: str,
    read: Trace,
    machines: list[TraceNode],
    epoch: Instant,
    seed: int,
    report: Path | None,
    svg: Path | None,
    plans: bool,
) -> None:
    from connectors.embedded.server import EmbeddedPostgres, PostgresRefused
    from connectors.wiring import stores

    server = None
    try:
        opened = DataFolder.open(where, clock="virtual")
    except FolderRefused as error:
        fail(REFUSED, str(error))
        return
    try:
        if not dsn:
            server = stores.embedded(opened, lambda what: err.print(f"... {what}", style="dim"))
            dsn = server.start()
        stores.prepare(dsn)
        opened.secret("fingerprint")
        sockets = EmbeddedPostgres(opened.path, "").socket
        sockets.mkdir(mode=0o700, exist_ok=True)
        service = Service(dsn, f"{sockets}/sequencer.sock", "", 0, {})
        Path(service.socket).unlink(missing_ok=True)
        write_service(opened.path, service)
        _run(opened.path, service, read, machines, epoch, seed, report, svg, plans)
    except PostgresRefused as error:
        fail(NOT_REACHABLE, str(error))
    finally:
        forget_service(opened.path)
        if server is not None:
            server.stop()
        opened.close()


def _run(
    where: Path,
    service: Service,
    read: Trace,
    machines: list[TraceNode],
    epoch: Instant,
    seed: int,
    report: Path | None,
    svg: Path | None,
    plans: bool,
) -> None:
    from connectors.wiring import tracing

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err) as progress:
        task = progress.add_task("starting", total=len(read.jobs))
        found, points = tracing.run_trace(
            where,
            service,
            read,
            machines,
            epoch,
            seed,
            lambda count: progress.advance(task, count),
            lambda what: progress.update(task, description=what),
            plans=plans,
        )
    if report:
        report.write_text(json.dumps(found.as_json(), indent=2) + "\n")
    if svg:
        svg.write_text(chart(points, f"GPU time by state, {found.nodes_kept} nodes"))
    for words in read.complaints[:5]:
        err.print(words, style="dim")
    tell(found.as_json(), found.rows(), ("what", "value"), "Trace")


def _export(kind: str, form: str, path: Path) -> None:
    from connectors.exports import assignments as exports

    if form not in exports.WRITERS:
        raise typer.BadParameter(f"{form!r}: write csv or jsonl")
    with database() as dsn:
        columns, rows = {
            "assignments": (exports.COLUMNS, exports.assignments(dsn)),
            "usage": (exports.USAGE_COLUMNS, exports.usage(dsn)),
        }[kind]
        count = exports.WRITERS[form](path, columns, rows)
    if options.json:
        out.print_json(json.dumps({"rows": count, "file": str(path)}))
    else:
        out.print(f"{count} rows in {path}")


Form = Annotated[str, typer.Option("--format", help="csv or jsonl")]
To = Annotated[Path, typer.Option("--out", help="the file")]
From = Annotated[Path | None, typer.Option("--data", help="a stopped data folder")]


@export_verb("assignments")
def export_assignments(to: To, form: Form = "csv", data: From = None) -> None:
    """Every span ever held, a row per GPU and span."""
    options.data = data or options.data
    _export("assignments", form, to)


@export_verb("usage")
def export_usage(to: To, form: Form = "csv", data: From = None) -> None:
    """GPU-microseconds by pool, hour, tenant and state."""
    options.data = data or options.data
    _export("usage", form, to)

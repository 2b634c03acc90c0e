"""Verbs of reservations."""

from pathlib import Path
from typing import Annotated, Any

import typer

from connectors.cli.console import (
    api,
    command,
    duration,
    group,
    instant,
    own_tenant,
    refusals_told,
    tell,
)
from connectors.cli.solving import write_text

app, verb = group("reservation", "Show, list and change reservations")

Id = Annotated[str, typer.Argument(help="the reservation's id")]
COLUMNS = ("reservation_id", "tenant_id", "state", "milli", "start", "end", "klass")


def reserve(
    gpus: Annotated[int, typer.Option(help="GPUs; more than a node has become whole nodes")] = 0,
    nodes: Annotated[int, typer.Option(help="whole nodes")] = 0,
    share: Annotated[int, typer.Option(help="thousandths of one GPU")] = 0,
    length: Annotated[str, typer.Option("--for", help="90m, 4h, 2d; an hour")] = "",
    until_released: Annotated[
        bool, typer.Option("--until-released", help="no end: its term is renewed")
    ] = False,
    start: Annotated[str, typer.Option("--from", help="now, tomorrow 09:00, ISO")] = "now",
    zone: Annotated[str, typer.Option(help="an IANA zone for --from")] = "",
    pool: Annotated[str, typer.Option(help="the pool")] = "main",
    tenant: Annotated[str, typer.Option(help="for which tenant; the token's own")] = "",
    klass: Annotated[
        str, typer.Option("--class", help="guaranteed, borrowed, overflow")
    ] = "guaranteed",
    model: Annotated[list[str] | None, typer.Option(help="any of these models")] = None,
    level: Annotated[str, typer.Option(help="all in one group of this level")] = "",
    environment: Annotated[
        str, typer.Option(help="set one up on the units: kubernetes, slurm, none")
    ] = "",
    scratch: Annotated[int, typer.Option(help="its scratch storage in GiB, wiped behind it")] = 0,
    volume: Annotated[str, typer.Option(help="its volume of your own, which stays")] = "",
    hold: Annotated[str, typer.Option(help="hold for so long, to be confirmed")] = "",
    key: Annotated[str, typer.Option(help="idempotency key; a new one when not given")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="tell, book nothing")] = False,
) -> None:
    """Book units over a window."""
    if (scratch or volume) and not environment:
        raise typer.BadParameter("--scratch and --volume go with --environment")
    if until_released and length:
        raise typer.BadParameter("give either --for or --until-released")
    size = {
        name: value
        for name, value in (("gpus", gpus), ("nodes", nodes), ("share_milli", share))
        if value
    }
    shape: dict[str, Any] = {"models": model or [], "same_level": level or None}
    body = {
        "tenant_id": tenant or own_tenant(),
        "pool_id": pool,
        "size": size or {"gpus": 1},
        "start": instant(start, zone),
        "duration_seconds": None if until_released else duration(length or "1h"),
        "until_released": until_released,
        "klass": klass,
        "shape": shape,
        "hold_seconds": duration(hold) if hold else None,
        "environment": {"orchestrator": environment, "scratch_gib": scratch, "volume": volume}
        if environment
        else None,
    }
    command("/v1/reservations", body, key, dry_run=dry_run)


@verb("list")
def list_(
    state: Annotated[str, typer.Option(help="only those in this state")] = "",
    limit: Annotated[int, typer.Option(help="at most so many")] = 20,
) -> None:
    """The newest reservations."""
    with refusals_told():
        content = api().get("/v1/reservations", state=state or None, limit=limit)
    tell(content, content["reservations"], COLUMNS)


@verb()
def show(reservation_id: Id) -> None:
    """One reservation and its units."""
    with refusals_told():
        content = api().get(f"/v1/reservations/{reservation_id}")
    title = ", ".join(
        f"{name} {content[name]}" for name in ("tenant_id", "state", "klass", "start", "end")
    )
    title += ", until released" if content["open_ended"] else ""
    title += f", environment {content['environment']}" if content["environment"] else ""
    tell(
        content, content["units"], ("node_id", "first_milli", "width_milli", "start", "end"), title
    )


@verb()
def ics(
    reservation_id: Id, to: Annotated[Path, typer.Option("--out", help="the file, iCalendar")]
) -> None:
    """Write it to a file that calendars take."""
    with refusals_told():
        write_text(to, api().text(f"/v1/reservations/{reservation_id}/calendar.ics"))


@verb()
def confirm(reservation_id: Id) -> None:
    """Make a hold binding."""
    command(f"/v1/reservations/{reservation_id}/confirm", {})


@verb()
def extend(reservation_id: Id, until: Annotated[str, typer.Option(help="the new end")]) -> None:
    """Let it end later."""
    command(f"/v1/reservations/{reservation_id}/extend", {"end": instant(until)})


@verb()
def shrink(
    reservation_id: Id,
    gpus: Annotated[int, typer.Option(help="GPUs that stay")] = 0,
    nodes: Annotated[int, typer.Option(help="whole nodes that stay")] = 0,
) -> None:
    """Keep less of it."""
    command(f"/v1/reservations/{reservation_id}/shrink", {"keep": {"gpus": gpus, "nodes": nodes}})


@verb("stop-renewing")
def stop_renewing(reservation_id: Id) -> None:
    """Let an open-ended one end with the term that it has."""
    command(f"/v1/reservations/{reservation_id}/stop-renewing", {})


@verb("give-back")
def give_back(reservation_id: Id) -> None:
    """Let go of a running one."""
    command(f"/v1/reservations/{reservation_id}/give-back", {})


@verb()
def cancel(reservation_id: Id) -> None:
    """Call it off before it starts."""
    command(f"/v1/reservations/{reservation_id}/cancel", {})

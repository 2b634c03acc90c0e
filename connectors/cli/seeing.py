"""Verbs that look: status, calendar, watch, why, whoami, availability, events."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from connectors.cli.console import (
    Note,
    api,
    command,
    duration,
    instant,
    options,
    out,
    refusals_told,
    tell,
)
from connectors.cli.solving import write_text

BAR_CHARACTERS = 64


def whoami() -> None:
    """Who am I, and what may I do."""
    with refusals_told():
        who = api().get("/v1/whoami")
    rows = [
        {"field": name, "value": ", ".join(v) if isinstance(v, list) else v}
        for name, v in who.items()
    ]
    tell(who, rows, ("field", "value"))


def status() -> None:
    """The fleet in one screen."""
    with refusals_told():
        content = api().get("/v1/status")
    rows = [
        row
        | {
            "held": f"{int(row['held_milli']) / 1000:g} of {row['gpus']} GPUs",
            "frozen": row["frozen"] or "-",
        }
        for row in content["pools"]
    ]
    tell(content, rows, ("pool_id", "state", "nodes", "held", "running", "frozen"), "Fleet")


def calendar(
    start: Annotated[str, typer.Option("--from", help="now, tomorrow 09:00, ISO")] = "now",
    length: Annotated[str, typer.Option("--for", help="90m, 24h, 7d")] = "24h",
    ics: Annotated[Path | None, typer.Option(help="write it to a file, as iCalendar")] = None,
    tenant: Annotated[str, typer.Option(help="only this tenant's, with --ics")] = "",
) -> None:
    """Who holds which node when, as a Gantt chart; or reservations as iCalendar."""
    from datetime import UTC, datetime, timedelta

    begin = instant(start) or datetime.now(UTC).isoformat(timespec="seconds")
    first = datetime.fromisoformat(begin)
    span = timedelta(seconds=duration(length))
    window = {"from": begin, "to": (first + span).isoformat()}
    if ics:
        with refusals_told():
            write_text(ics, api().text("/v1/calendar.ics", tenant_id=tenant or None, **window))
        return
    with refusals_told():
        content = api().get("/v1/calendar", **window)
    if options.json:
        tell(content, (), ())
        return
    out.print(f"[bold]{first:%Y-%m-%d %H:%M %Z}[/] + {length}", highlight=False)
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in content["calendar"]:
        lines.setdefault(row["node_id"], []).append(row)
    for node, rows in lines.items():
        bar = [" "] * BAR_CHARACTERS
        for row in rows:
            a, b = ((datetime.fromisoformat(row[edge]) - first) / span for edge in ("start", "end"))
            left, right = (min(BAR_CHARACTERS, max(0, round(x * BAR_CHARACTERS))) for x in (a, b))
            for at in range(left, max(right, left + 1)):
                if at < BAR_CHARACTERS:
                    bar[at] = row["tenant_id"][0] if bar[at] == " " else "+"
        out.print(f"{node:>16} |{''.join(bar)}|", highlight=False)
    if not lines:
        out.print("nothing is held", style="dim")


def watch(after: Annotated[int, typer.Option(help="a position of the log")] = 0) -> None:
    """Live events, until interrupted."""
    with refusals_told():
        for data in api().events(after):
            if options.json:
                print(data, flush=True)  # noqa: T201 - JSON for programs
                continue
            event = json.loads(data)
            out.print(
                f"[dim]{event['seq']:>8} {event['recorded_at']}[/] [bold]{event['type'].split('.')[0]}[/] {event['stream']}",
                highlight=False,
            )


def why(subject: Annotated[str, typer.Argument(help="a reservation's or a command's id")]) -> None:
    """The reason behind a reservation, a refusal, a preemption."""
    with refusals_told():
        content = api().get(f"/v1/why/{subject}")
    if "request" in content:
        told = content["request"]
        rows = [{"field": name, "value": value} for name, value in told.items()]
        tell(
            content, rows, ("field", "value"), f"{told['command']} {told['kind']}: {told['reason']}"
        )
        return
    rows = [
        {
            "seq": event["seq"],
            "when": event["occurred_at"],
            "what": event["type"].split(".")[0],
            "who": event["principal"],
            "why": event["fact"].get("cause") or event["fact"].get("reason") or "",
        }
        for event in content["story"]
    ]
    title = f"Reservation {subject}: {content['reservation']['state']}"
    tell(content, rows, ("seq", "when", "what", "who", "why"), title)


def availability(
    pool: Annotated[str, typer.Option(help="the pool")] = "main",
    gpus: Annotated[int, typer.Option(help="GPUs")] = 0,
    nodes: Annotated[int, typer.Option(help="whole nodes")] = 0,
    length: Annotated[str, typer.Option("--for", help="90m, 4h, 2d")] = "1h",
    tenant: Annotated[str, typer.Option(help="for which tenant")] = "",
) -> None:
    """Whether an ask fits now, and the nearest windows in which it would."""
    with refusals_told():
        content = api().get(
            "/v1/availability",
            pool_id=pool,
            gpus=gpus or (None if nodes else 1),
            nodes=nodes or None,
            duration_seconds=duration(length),
            tenant_id=tenant or None,
        )
    rows = content["offers"]
    title = (
        "It fits now"
        if content["fits"]
        else f"Not now: {content['title'] if 'title' in content else content['reason']}"
    )
    tell(content, rows, ("start", "end"), title)


def freeze(
    acts: Annotated[list[str], typer.Argument(help="apply, preempt, repair, plan, bookings")],
    reason: Annotated[str, typer.Option(help="why, as a short code; it is recorded")],
    pool: Annotated[str, typer.Option(help="one pool; all when not given")] = "",
    note: Note = "",
) -> None:
    """Pull the brake on some kinds of act."""
    body = {"acts": acts, "reason": reason, "pool_id": pool or None, "note": note or None}
    command("/v1/freeze", body)


def thaw(
    acts: Annotated[list[str], typer.Argument(help="apply, preempt, repair, plan, bookings")],
    reason: Annotated[str, typer.Option(help="why, as a short code; it is recorded")],
    pool: Annotated[str, typer.Option(help="one pool; all when not given")] = "",
    note: Note = "",
) -> None:
    """Let go of the brake."""
    body = {"acts": acts, "reason": reason, "pool_id": pool or None, "note": note or None}
    command("/v1/thaw", body)

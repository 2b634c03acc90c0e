"""`plan show`, `plan explain`, `plan what-if`: the plan, its reasons, and what would be otherwise."""

from pathlib import Path
from typing import Annotated, Any

import typer

from connectors.cli.console import (
    USED_WRONGLY,
    api,
    duration,
    err,
    fail,
    instant,
    options,
    out,
    refusals_told,
    tell,
)
from connectors.cli.planning import plan, plan_verb
from connectors.cli.solving import write_text
from domain.units import MILLI_PER_GPU

Pool = Annotated[str, typer.Option(help="the pool")]
Picture = Annotated[Path | None, typer.Option(help="draw a Gantt chart into this file")]
From = Annotated[str, typer.Option("--from", help="now, tomorrow 09:00, ISO")]
Length = Annotated[str, typer.Option("--for", help="how much of time is shown: 90m, 4h, 2d")]
NODES_SHOWN = 40


@plan_verb("queue")
def queue(pool: Pool = "main") -> None:
    """Who waits in a pool: the position of each in its class, why, and when it could start."""
    with refusals_told():
        content = api().get("/v1/queue", pool_id=pool)
    rows = [
        {
            **row,
            "gpus": f"{row['milli'] / MILLI_PER_GPU:g}",
            "share": f"{row['share']['dominant_ppm'] / 10_000:.2f} % of {row['share']['dominant']}"
            if row["share"]
            else "",
        }
        for row in content["waiting"]
    ]
    columns = (
        "position",
        "class",
        "reservation_id",
        "tenant_id",
        "gpus",
        "share",
        "start_estimate",
    )
    tell(content, rows, columns, f"Queue of {pool}, by {content['order']}")


@plan_verb("show")
def show(
    pool: Pool = "main", start: From = "now", length: Length = "24h", svg: Picture = None
) -> None:
    """A pool's plan: who holds which nodes when, what moved, and what is down."""
    query = {"pool_id": pool, **_span(start, length)}
    with refusals_told():
        content = api().get("/v1/plan", **query)
        if svg is not None:
            _write(svg, api().text("/v1/plan", svg="true", **query))
    held: dict[str, dict[str, Any]] = {
        node["node_id"]: {**node, "held": 0, "until": "", "tenants": set(), "down": ""}
        for node in content["nodes"]
    }
    for bar in content["held"]:
        row = held[bar["node_id"]]
        row["held"] += 1
        row["until"] = max(row["until"], bar["end"])
        row["tenants"].add(bar["tenant_id"])
    for down in content["down"]:
        held[down["node_id"]]["down"] = down["why"]
    rows = [{**row, "tenants": ", ".join(sorted(row["tenants"]))} for row in held.values()]
    title = f"Plan of {pool}, {content['from']} to {content['to']}"
    columns = ("node_id", "group", "gpus", "held", "tenants", "until", "down")
    tell(content, rows[:NODES_SHOWN], columns, title)
    if len(rows) > NODES_SHOWN and not options.json:
        err.print(f"and {len(rows) - NODES_SHOWN} more nodes; --json tells all", style="dim")


def _span(start: str, length: str) -> dict[str, str]:
    first = instant(start)
    if first is None:
        return {} if length == "24h" else _from_now(length)
    return {"from": first, "to": _after(first, length)}


def _from_now(length: str) -> dict[str, str]:
    from datetime import UTC, datetime

    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {"from": now, "to": _after(now, length)}


def _after(first: str, length: str) -> str:
    from datetime import datetime, timedelta

    end = datetime.fromisoformat(first) + timedelta(seconds=duration(length))
    return end.isoformat(timespec="seconds").replace("+00:00", "Z")


def _write(file: Path, text: str) -> None:
    write_text(file, text)
    err.print(f"drawn: {file}", style="dim")


@plan_verb("explain")
def explain(
    subject: Annotated[str, typer.Argument(help="a reservation's id, or a refused request's")],
) -> None:
    """Why it sits there; or why not, who is in the way, which limit, and the nearest yes."""
    with refusals_told():
        content = api().get(f"/v1/plan/explain/{subject}")
    if options.json:
        tell(content, (), ())
        return
    out.print(f"[bold]{content['kind'].capitalize()} {subject}[/]: {content['state']}")
    for name, said in (("over", "its window is over since"), ("gone", "nothing to look at:")):
        if name in content:
            out.print(f"  {said} {content[name]}")
    if "want" in content:
        _tell_want(content)
    for step in content.get("placed", ()):
        way = " -> ".join(", ".join(part) for part in (step["left"], step["taken"]) if part)
        out.print(f"  [dim]#{step['seq']} {step['at']}[/] {step['by']}: {way}", highlight=False)


def _tell_want(content: dict[str, Any]) -> None:
    want = content["want"]
    size = ", ".join(f"{value} {name}" for name, value in want["size"].items() if value)
    whole = f"{size} for {want['tenant_id']} in {want['pool_id']}, {want['start']} to {want['end']}"
    out.print(f"  wants {whole} ({want['class']})", highlight=False)
    if content["here"]:
        out.print(f"  sits on {', '.join(content['here'])}", highlight=False)
        verdicts = content.get("verdicts", {})
        if content["fits"] and "again" in content:
            again = ", ".join(content["again"])
            out.print(
                f"  of all nodes that fit, those with the fewest GPUs to spare are taken, by name;"
                f" that is now {again}",
                highlight=False,
            )
        if verdicts:
            told = ", ".join(f"{count} {name}" for name, count in verdicts.items())
            out.print(f"  nodes: {told}", highlight=False)
    elif content["fits"]:
        out.print("  [green]fits as things stand now: ask again[/]")
    for limit in content["limits"]:
        facts = ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in limit["facts"].items())
        alone = "; this alone stands in the way" if limit["alone"] else ""
        out.print(f"  [red]{limit['rule']}[/]: {facts}{alone}", highlight=False)
    for each in content["in_the_way"]:
        whose = each["tenant_id"] or "nobody's"
        out.print(
            f"  in the way: {each['holder_id']} ({whose}, {each['class']}, {each['state']})"
            f" {each['milli'] / MILLI_PER_GPU:g} GPUs of {each['node_id']} until {each['end']}",
            highlight=False,
        )
    if content["others_in_the_way"]:
        out.print("  others are in the way")
    for near in content["nearest"]:
        size = ", ".join(f"{value} {name}" for name, value in near["size"].items() if value)
        level = near["shape"]["same_level"]
        like = [*near["shape"]["models"], *([f"in one {level}"] if level else [])]
        out.print(
            f"  [green]would fit, {near['change']}:[/] {size}, {near['start']} to {near['end']}"
            f", {near['class']}{', ' + ', '.join(like) if like else ''}",
            highlight=False,
        )


@plan_verb("what-if")
def what_if(
    pool: Pool = "main",
    lost: Annotated[list[str] | None, typer.Option(help="a node that would be lost")] = None,
    quota: Annotated[
        list[str] | None, typer.Option(help="TENANT=GPUs that it would be entitled to")
    ] = None,
    tenant: Annotated[str, typer.Option(help="who would ask for --gpus or --nodes")] = "",
    gpus: Annotated[int, typer.Option(help="GPUs that would be asked for")] = 0,
    nodes: Annotated[int, typer.Option(help="whole nodes that would be asked for")] = 0,
    model: Annotated[list[str] | None, typer.Option(help="any of these models")] = None,
    level: Annotated[str, typer.Option(help="all in one group of this level")] = "",
    klass: Annotated[str, typer.Option("--class", help="of the request")] = "guaranteed",
    start: From = "now",
    length: Annotated[str, typer.Option("--for", help="of the request: 90m, 4h, 2d")] = "1h",
    svg: Picture = None,
) -> None:
    """What would move, be short or get a place; nothing is changed by asking."""
    if not (lost or quota or gpus or nodes):
        fail(USED_WRONGLY, "suppose something: --lost NODE, --quota TENANT=GPUS, --gpus or --nodes")
    query: dict[str, Any] = {
        "pool_id": pool,
        "lost": ",".join(lost or ()) or None,
        "quota": ",".join(quota or ()) or None,
    }
    if gpus or nodes:
        query |= {
            "tenant_id": tenant or None,
            "gpus": gpus or None,
            "nodes": nodes or None,
            "models": ",".join(model or ()) or None,
            "same_level": level or None,
            "class": klass,
            "start": instant(start),
            "duration_seconds": duration(length),
        }
    with refusals_told():
        content = api().get("/v1/plan/what-if", **query)
        if svg is not None:
            _write(svg, api().text("/v1/plan/what-if", svg="true", **query))
    _tell_supposed(content)


def _tell_supposed(content: dict[str, Any]) -> None:
    rows = []
    for each in content["differences"]:
        before, after = each["before"] or {}, each["after"] or {}
        rows.append(
            {
                "reservation_id": each["reservation_id"],
                "tenant_id": (after or before).get("tenant_id"),
                "state": _change(before.get("state", "new"), after.get("state", "gone")),
                "nodes": _change(
                    ", ".join(before.get("nodes", ())), ", ".join(after.get("nodes", ()))
                ),
                "moved_gpus": f"{each['moved_milli'] / MILLI_PER_GPU:g}",
                "short_gpus": f"{after.get('short_milli', 0) / MILLI_PER_GPU:g}",
            }
        )
    columns = ("reservation_id", "tenant_id", "state", "nodes", "moved_gpus", "short_gpus")
    tell(content, rows, columns, f"What would be otherwise, as of #{content['as_of_seq']}")
    if options.json:
        return
    request = content["request"]
    if request:
        why = f": {request['reason']}" if "reason" in request else ""
        on = f" on {', '.join(request['nodes'])}" if request.get("nodes") else ""
        out.print(f"the request would be {request['outcome']}{why}{on}", highlight=False)
    for over in content["over_quota"]:
        out.print(
            f"{over['tenant_id']} has {over['booked_milli'] / MILLI_PER_GPU:g} GPUs booked at"
            f" {over['at']}, above {over['nominal_milli'] / MILLI_PER_GPU:g}: it keeps them",
            highlight=False,
        )
    if content["plan"]:
        told = ", ".join(f"{k} {v}" for k, v in content["plan"].items() if k in _PLAN_TOLD)
        out.print(f"plan tried for what waits: {told}", highlight=False)


_PLAN_TOLD = ("plan", "outcome", "status", "confirmed")


def _change(before: str, after: str) -> str:
    return after if before == after else f"{before or '-'} -> {after or '-'}"


__all__ = ["plan"]

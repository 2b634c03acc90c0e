"""How the command line finds the service, and how it tells: tables for people, JSON for programs."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from connectors.client.http import Api, Refused, Unreachable
from connectors.running.files import default_folder, read_service

V = TypeVar("V", bound=Callable[..., Any])
"""A verb."""

Note = Annotated[
    str, typer.Option(help="free text for operators and auditors; sealed, so that it can be erased")
]
"""Words that stand beside a short reason."""

DONE, REFUSED, USED_WRONGLY, NOT_REACHABLE = 0, 1, 2, 3

WIDE = 180
"""Columns for output that nobody's terminal limits."""

out = Console(soft_wrap=True, width=None if sys.stdout.isatty() else WIDE)
err = Console(stderr=True, soft_wrap=True)


@dataclass(slots=True)
class Options:
    """What stands before the verb."""

    json: bool = False
    server: str = ""
    token: str = ""
    role: str = "operator"
    data: Path | None = None
    at: str = ""


options = Options()


def folder() -> Path:
    """The data folder that is meant."""
    return options.data or default_folder()


def api() -> Api:
    """The service: by `--server`, by the environment, or the one that runs here."""
    url = options.server or os.environ.get("GPULEDGER_SERVER", "")
    token = options.token or os.environ.get("GPULEDGER_TOKEN", "")
    service = read_service(folder())
    if service is not None:
        url = url or service.url
        token = token or service.tokens.get(options.role, "")
    if not url:
        fail(
            NOT_REACHABLE,
            f"no service runs over {folder()}",
            "start one with 'make run' or 'gpuledger dev', or name one with --server and --token",
        )
    return Api(url, token, options.at)


def fail(status: int, what: str, remedy: str = "") -> None:
    """End with a status, saying what is wrong and what to do."""
    err.print(f"[bold red]{escape(what)}[/]", highlight=False)
    if remedy:
        err.print(escape(remedy), highlight=False)
    raise typer.Exit(status)


@contextmanager
def refusals_told() -> Iterator[None]:
    """Refusals and silence end the command with their own status."""
    try:
        yield
    except Refused as error:
        tell_refusal(error.problem)
        raise typer.Exit(REFUSED) from error
    except Unreachable as error:
        fail(NOT_REACHABLE, str(error), "is the service running? 'gpuledger doctor' looks")


def tell_refusal(problem: dict[str, Any]) -> None:
    """A refusal with its facts, whether a retry helps, and what would fit instead."""
    if options.json:
        print(json.dumps(problem))  # noqa: T201 - JSON for programs
        return
    title = escape(str(problem.get("title", "no reason")))
    err.print(f"[bold red]refused:[/] {title}", highlight=False)
    for name, value in (problem.get("facts") or {}).items():
        err.print(escape(f"  {name.replace('_', ' ')}: {value}"), highlight=False)
    if not problem.get("facts") and problem.get("detail"):
        err.print(escape(f"  {problem['detail']}"), highlight=False)
    if problem.get("retry"):
        err.print(f"  retry: {problem['retry'].replace('-', ' ')}", highlight=False)
    for offer in problem.get("offers") or ():
        err.print(f"  [green]would fit:[/] {offer['start']} to {offer['end']}", highlight=False)
    if problem.get("command_id"):
        err.print(f"  why: gpuledger why {problem['command_id']}", highlight=False)


def tell(
    content: dict[str, Any] | list[Any],
    rows: Sequence[dict[str, Any]],
    columns: Sequence[str],
    title: str = "",
) -> None:
    """The same content as JSON, or as a table."""
    if options.json:
        print(json.dumps(content))  # noqa: T201 - JSON for programs
        return
    table = Table(
        title=escape(title) or None,
        title_justify="left",
        header_style="bold",
        box=None,
        pad_edge=False,
    )
    for column in columns:
        table.add_column(column.replace("_", " "), no_wrap=column.endswith("_id"))
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    out.print(table)
    if not rows:
        out.print("(none)", style="dim")


def _cell(value: Any) -> str:  # noqa: ANN401 - JSON
    text = "" if value is None else str(value)
    colours = {
        "failed": "red",
        "degraded": "red",
        "suspected": "yellow",
        "ready": "green",
        "active": "green",
    }
    return f"[{colours[text]}]{text}[/]" if text in colours else escape(text)


def tell_outcome(content: dict[str, Any]) -> None:
    """What a command came to."""
    if options.json:
        print(json.dumps(content))  # noqa: T201 - JSON for programs
        return
    if content["outcome"] == "no-effect":
        out.print("already so; nothing changed", style="dim")
    for fact in content["facts"]:
        name = fact["type"].split(".")[0]
        hidden = {"seq", "type", "stream", "version"}
        told = ", ".join(
            f"{key}={_short(value)}" for key, value in fact.items() if key not in hidden and value
        )
        out.print(f"[bold]{name}[/] [dim]#{fact['seq']}[/] {escape(told)}", highlight=False)
    if content.get("id"):
        out.print(f"id: [bold]{content['id']}[/]", highlight=False)


def _short(value: Any) -> str:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}={_short(v)}" for k, v in value.items() if v) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_short(v) for v in value) + "]"
    return str(value)


def own_tenant() -> str:
    """The tenant that the token speaks for; whoever speaks for none names one."""
    with refusals_told():
        who = api().get("/v1/whoami")
    if not who["tenant"]:
        fail(USED_WRONGLY, "this token speaks for no tenant", "name one with --tenant team-a")
    return str(who["tenant"])


def command(path: str, body: dict[str, Any], key: str = "", *, dry_run: bool = False) -> None:
    """Send a command and tell what it came to."""
    with refusals_told():
        given = {name: value for name, value in body.items() if value is not None}
        tell_outcome(api().post(path, given, key, dry_run=dry_run))


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def duration(text: str) -> int:
    """Seconds from `90m`, `4h`, `2d`, `1h30m`."""
    total, number = 0, ""
    for letter in text.strip():
        if letter.isdigit():
            number += letter
        elif letter in _UNITS and number:
            total += int(number) * _UNITS[letter]
            number = ""
        else:
            raise typer.BadParameter(f"{text!r} is no duration; write 90m, 4h, 2d or 1h30m")
    if number or not total:
        raise typer.BadParameter(f"{text!r} is no duration; write 90m, 4h, 2d or 1h30m")
    return total


def instant(text: str, zone: str = "") -> str | None:
    """RFC 3339 from `now`, `tomorrow 09:00`, `today 14:30`, `09:00`, ISO; None for `now`."""
    where = _zone(zone)
    if text == "now":
        return None
    try:
        moment = datetime.fromisoformat(_dated(text, datetime.now(where)))
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} is no time; write now, tomorrow 09:00 or 2026-01-01T09:00"
        ) from error
    moment = moment if moment.tzinfo else moment.replace(tzinfo=where)
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


_CLOCK = re.compile(r"[0-2]?\d(:[0-5]\d){0,2}")
"""A time of day: `9`, `09:00`, `09:00:30`."""


def _dated(text: str, local: datetime) -> str:
    """A text with its day written out; one that speaks of no day but a clock is today's."""
    days = {"today": 0, "tomorrow": 1}
    word, _, clock = text.strip().partition(" ")
    if word not in days:
        word, clock = ("today", word) if ":" in word and _CLOCK.fullmatch(word) else ("", "")
    if not word:
        return text
    clock = clock.strip() or "00:00"
    if not _CLOCK.fullmatch(clock):
        raise ValueError(clock)
    hour, *rest = clock.split(":")
    day = local.date() + timedelta(days=days[word])
    return f"{day}T{':'.join([hour.zfill(2), *(rest or ['00'])])}"


def _zone(name: str) -> Any:  # noqa: ANN401 - a tzinfo
    if not name:
        return datetime.now().astimezone().tzinfo
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise typer.BadParameter(f"{name!r} is no IANA zone, such as Europe/Berlin") from error


def group(name: str, help_text: str) -> tuple[typer.Typer, Callable[..., Callable[[V], V]]]:
    """A group of verbs, and the decorator that adds one."""
    app = typer.Typer(name=name, help=help_text, no_args_is_help=True)
    return app, app.command

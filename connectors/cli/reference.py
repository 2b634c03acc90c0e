"""The reference pages docs/http.md, docs/cli.md and docs/events.md, written from the code: `python -m connectors.cli.reference`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from connectors.wiring import faces
from domain.access import COMMAND_VERBS, READ_VERBS, Verb
from domain.principal import Role
from domain.refusals import RULES, Reason
from schemas.json_form import json_schema
from schemas.reference import events_page

DOCS = Path(__file__).parent.parent.parent / "docs"

UNTOLD = {"--help", "--install-completion", "--show-completion"}
"""Options that the framework adds, told otherwise by each shell."""

HTTP_HEAD = """# HTTP

Written from the code by `python -m connectors.cli.reference`; a test holds it current. The same for machines is
`/openapi.json`, for reading in a browser `/docs`; neither needs anything from outside.

- Every call but `/`, `/docs`, `/openapi.json`, `/metrics` and `/v1/health` bears a token: `Authorization: Bearer TOKEN`.
- Every command bears an `Idempotency-Key` of 1 to 255 characters, new for each intent. The same key with the same body
  has the same outcome, for ever (`"repeat": true`); with another body it is a `key-reused`.
- Bodies are JSON objects of at most {body} bytes. A field that is unknown, missing or of another type is `malformed`,
  with an RFC 6901 `pointer` to it; nothing is remembered of such a call.
- Instants are RFC 3339 with an offset, such as `2030-01-01T09:00:00Z`; windows are half-open and of whole seconds.
- `?dry_run=true` on a command tells what it would come to, and books nothing.
- `If-Match` on a change of a reservation takes the `ETag` of its GET: had its intent changed since, it is `stale-version`.
- `?min_seq=N` on a read waits until it shows the position N, such as the `seq_to` of an outcome.
- 201 with `Location` for what came into being, 202 when it is queued for the planner, 200 otherwise.
- A service on a virtual clock (`gpuledger serve sequencer|http --virtual`, for stories and traces) takes the time from the
  header `{time}`, an RFC 3339 instant, and moves on by `POST {advance}`; any other turns a call with that header away.
- 503 with `Retry-After` when the database or the sequencer is away: the same key may be sent again.
- A tenant that names what is not its own is told `not-found`, and the attempt is a fact of the log (of reads, once an hour and subject).
"""

BATCH = """
## Batch

`POST /v1/batch` with `{{"commands": [{{"command": "RequestReservation", "key": "...", "body": {{...}}}}]}}`, at most
{batch} of them. They are decided in order, each by itself; `outcomes` stand in the same order. One that is malformed
turns the whole call away before any of it is done. `?brief=true` leaves the facts out.

## Events

`GET /v1/events?after=SEQ&limit=N` answers with a page. With `Accept: text/event-stream` it goes on as server-sent events,
whose `id` is the position: `Last-Event-ID` goes on behind it. A tenant hears of its own reservations, quota and tags.

## Problems

RFC 9457, `application/problem+json`: `type`, `title`, `status`, `detail`; a refusal adds `reason`, `facts`, `offers`
(windows that would fit), `command_id` (for `GET /v1/why/ID`) and `retry`. The first reason that applies wins.

| reason | status | a retry | facts |
|---|---|---|---|
"""

CLI_HEAD = """# Command line

Written from the code by `python -m connectors.cli.reference`; a test holds it current.

Without `--server` the command finds the service that runs over the data folder (`--data`, else `$GPULEDGER_DATA_DIR`,
else `.gpuledger` here) and the token that its owner has of `--as ROLE`. `$GPULEDGER_SERVER` and `$GPULEDGER_TOKEN` name
another. Durations are `90m`, `4h`, `2d`, `1h30m`; times are `now`, `14:30`, `tomorrow 09:00` or ISO, in the zone of
`--zone` or the machine. `--json` may stand anywhere; standard output is JSON then, and nothing else.

`gpuledger --install-completion` completes verbs and options in your shell.

Exit status: 0 done, 1 refused or a check failed, 2 used wrongly, 3 not reachable.
"""


def _roles(verb: Verb) -> str:
    names = ", ".join(role.value for role in Role if role in verb.roles)
    return f"{names} (own)" if verb.own and Role.TENANT in verb.roles else names


def _first_line(text: str | None) -> str:
    return (text or "").strip().split("\n")[0]


def _fields(command: type[Any]) -> str:
    schema = json_schema(command)
    needed = set(schema.get("required", ()))
    return ", ".join(f"`{name}`{'*' if name in needed else ''}" for name in schema["properties"])


def http_page() -> str:
    """docs/http.md."""
    lines = [HTTP_HEAD.format(body=faces.BODY_BYTES_MAX, time=faces.HEADER, advance=faces.ADVANCE)]
    lines += ["## Commands\n", "Fields with a star must be given, in the path or the body.\n"]
    lines += ["| POST | what it does | for | fields |", "|---|---|---|---|"]
    for route in faces.ROUTES:
        name = route.command.__name__
        told = _first_line(route.command.__doc__)
        who = _roles(COMMAND_VERBS[name])
        lines.append(f"| `{route.path}` | {name}: {told} | {who} | {_fields(route.command)} |")
    lines += ["\n## Reads\n", "| GET | what it tells | for |", "|---|---|---|"]
    for path, verb in faces.READS.items():
        lines.append(f"| `{path}` | {faces.TOLD[verb]} | {_roles(READ_VERBS[verb])} |")
    lines.append("| `/v1/health` | Whether the service can decide and be read | anyone |")
    lines.append(BATCH.format(batch=faces.BATCH_COMMANDS_MAX).rstrip("\n"))
    for reason in Reason:
        rule = RULES[reason]
        carried = ", ".join(f"`{name}`" for name in sorted(rule.must_carry))
        lines.append(
            f"| {reason.code} | {faces.STATUS[reason]} | {rule.retry.value.replace('-', ' ')} | {carried} |"
        )
    return "\n".join(lines) + "\n"


def cli_page(app: typer.Typer) -> str:
    """docs/cli.md."""
    root = typer.main.get_command(app)
    lines = [CLI_HEAD, "## Options before every verb\n", *_options(root), ""]
    for name, verb in _verbs("gpuledger", root):
        usage = " ".join(_argument(p) for p in verb.params if p.param_type_name == "argument")
        lines += [f"## `{' '.join(filter(None, (name, usage)))}`\n", _first_line(verb.help), ""]
        told = list(_options(verb))
        lines += [*told, ""] if told else []
    return "\n".join(lines).rstrip("\n") + "\n"


def _verbs(prefix: str, group: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - the framework keeps its classes to itself
    """Every verb below a group, in the order in which `--help` tells them."""
    for name, command in getattr(group, "commands", {}).items():
        if hasattr(command, "commands"):
            yield from _verbs(f"{prefix} {name}", command)
        else:
            yield f"{prefix} {name}", command


def _argument(parameter: Any) -> str:  # noqa: ANN401 - the framework keeps its classes to itself
    name = (parameter.name or "").upper()
    several = "..." if parameter.nargs == -1 else ""
    return f"{name}{several}" if parameter.required else f"[{name}{several}]"


def _options(command: Any) -> Iterator[str]:  # noqa: ANN401 - the framework keeps its classes to itself
    """A line per option."""
    for parameter in command.params:
        if parameter.param_type_name != "option" or UNTOLD & set(parameter.opts):
            continue
        told = getattr(parameter, "help", None) or ""
        default = parameter.default
        shown = f" (default `{default}`)" if isinstance(default, str | int) and default else ""
        needed = " (needed)" if parameter.required else ""
        yield f"- `{' '.join(parameter.opts)}` {told}{'' if default is True else shown}{needed}".rstrip()


def pages(app: typer.Typer) -> dict[str, str]:
    """Each page by its file's name."""
    return {"http.md": http_page(), "cli.md": cli_page(app), "events.md": events_page()}


def main() -> None:
    """Write the pages."""
    from connectors.cli.app import app

    for name, text in pages(app).items():
        (DOCS / name).write_text(text)
        sys.stdout.write(f"docs/{name}\n")


if __name__ == "__main__":
    main()

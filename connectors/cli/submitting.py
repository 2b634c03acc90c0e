"""`submit` any command by its name, and the verbs of the clock."""

import json
import sys
from pathlib import Path
from string import Formatter
from typing import Annotated, Any

import typer

from connectors.cli.console import (
    USED_WRONGLY,
    api,
    command,
    duration,
    fail,
    group,
    options,
    out,
    refusals_told,
)
from domain.timespan import MICROSECONDS

clock, clock_verb = group("clock", "The time that decisions are made at")


def submit(
    name: Annotated[str, typer.Argument(help="a command, such as ReportHealth (docs/http.md)")],
    body: Annotated[str, typer.Argument(help="its fields as JSON, @FILE, or - for the input")] = "",
    key: Annotated[str, typer.Option(help="idempotency key; a new one when not given")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="tell, change nothing")] = False,
) -> None:
    """Send any command with its fields, for which no verb stands here."""
    from connectors.wiring import faces

    path = next((r.path for r in faces.ROUTES if r.command.__name__ == name), None)
    if path is None:
        fail(USED_WRONGLY, f"no command is named {name}", "docs/http.md lists them")
        return
    values = _values(body)
    for field in _in_path(path):
        if not isinstance(values.get(field), str):
            fail(USED_WRONGLY, f"{name} needs {field}", f'give {{"{field}": "...", ...}}')
    command(path.format(**values), values, key, dry_run=dry_run)


def _in_path(path: str) -> list[str]:
    return [field for _, field, *_ in Formatter().parse(path) if field]


def _values(text: str) -> dict[str, Any]:
    """The JSON object that is given, in a file or on the input."""
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text()
        values = json.loads(text or "{}")
    except (OSError, ValueError) as error:
        fail(USED_WRONGLY, f"the body cannot be read: {error}")
    if not isinstance(values, dict):
        fail(USED_WRONGLY, "the body is no JSON object")
    return dict(values)


@clock_verb()
def confirm(
    ahead: Annotated[str, typer.Option(help="how far it jumped, as the refusals say: 90m, 2h")],
) -> None:
    """Say that a jump of the machine's clock is right: decisions go on at the new time."""
    command("/v1/clock/confirm", {"ahead_microseconds": duration(ahead) * MICROSECONDS})


@clock_verb()
def advance() -> None:
    """Bring a virtual clock on to `--at`; what is due happens."""
    if not options.at:
        fail(USED_WRONGLY, "say to when", "gpuledger --at 2026-01-01T09:00:00Z clock advance")
    from connectors.wiring import faces

    with refusals_told():
        content = api().post(faces.ADVANCE, {})
    if options.json:
        sys.stdout.write(json.dumps(content) + "\n")
    else:
        out.print(f"it is {content['now']}", highlight=False)

"""The `gpuledger` command."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from connectors.cli import (
    auditing,
    booking,
    charging,
    dead_letters,
    explaining,
    fleet,
    inspecting,
    installing,
    measuring,
    pricing,
    providing,
    restoring,
    running,
    seeing,
    solving,
    submitting,
    telling,
    tokens,
    topics,
    tracing,
)
from connectors.cli.console import options

app = typer.Typer(
    name="gpuledger",
    help="An event-sourced reservation ledger for shared GPU fleets.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def before(
    as_json: Annotated[bool, typer.Option("--json", help="JSON on standard output")] = False,
    server: Annotated[str, typer.Option(help="the service's address")] = "",
    token: Annotated[str, typer.Option(help="a bearer token")] = "",
    role: Annotated[
        str, typer.Option("--as", help="whose token of the local service")
    ] = "operator",
    data: Annotated[Path | None, typer.Option(help="the data folder")] = None,
    at: Annotated[
        str, typer.Option(help="when, in RFC 3339, for a service on a virtual clock")
    ] = "",
) -> None:
    """Options that stand before every verb."""
    options.at = at
    options.json, options.server, options.token = as_json, server, token
    options.role, options.data = role, data


for verb in (
    running.dev,
    running.serve,
    running.migrate,
    installing.init,
    running.doctor,
    seeing.status,
    seeing.calendar,
    seeing.watch,
    seeing.why,
    seeing.whoami,
    seeing.availability,
    seeing.freeze,
    seeing.thaw,
    booking.reserve,
    submitting.submit,
    solving.solve,
    telling.demo,
    restoring.restore,
    measuring.bench,
):
    app.command()(verb)
booking.app.command()(inspecting.history)
charging.charges_verb("import-invoice")(providing.import_invoice)
charging.charges_verb("invoices")(providing.invoices)
for group in (
    telling.scenario,
    tracing.trace,
    tracing.export,
    fleet.node,
    fleet.pool,
    fleet.tenant,
    fleet.quota,
    pricing.price,
    charging.charges,
    booking.app,
    inspecting.events,
    inspecting.projection,
    inspecting.schema,
    topics.topics,
    dead_letters.dlq,
    explaining.plan,
    submitting.clock,
    auditing.audit,
    auditing.directory,
    tokens.token,
):
    app.add_typer(group)


def json_first(words: Sequence[str]) -> list[str]:
    """`--json` holds wherever it stands before a `--`: it moves to the front."""
    end = words.index("--") if "--" in words else len(words)
    before = [word for word in words[:end] if word != "--json"]
    found = ["--json"] if len(before) < end else []
    return [*found, *before, *words[end:]]


def main() -> None:
    """Run it."""
    app(args=json_first(sys.argv[1:]))

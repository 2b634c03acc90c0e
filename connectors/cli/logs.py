"""Verbs of the log and what is folded from it: events, projections, schemas."""

import json
from typing import Annotated, Any

import typer

from connectors.cli.console import REFUSED, api, fail, group, options, out, refusals_told, tell
from connectors.cli.seeing import watch
from connectors.wiring import contracts

events, events_verb = group("events", "Events of the log")
projection, projection_verb = group("projection", "Read models that are folded from the log")
schema, schema_verb = group("schema", "Contracts of events and commands")

COLUMNS = ("seq", "recorded_at", "type", "stream", "principal")

events_verb("tail")(watch)


@events_verb("show")
def show_event(seq: Annotated[int, typer.Argument(help="its position", min=1)]) -> None:
    """One event with everything that it says."""
    with refusals_told():
        found = api().get("/v1/events", after=seq - 1, limit=1)["events"]
    if not found or found[0]["seq"] != seq:
        fail(REFUSED, f"there is no event {seq} that you may see")
    event = found[0]
    rows = [{"field": name, "value": value} for name, value in event.items() if name != "fact"]
    rows += [{"field": name, "value": _shown(value)} for name, value in event["fact"].items()]
    tell(event, rows, ("field", "value"))


@events_verb("list")
def list_events(
    after: Annotated[int, typer.Option(help="a position of the log", min=0)] = 0,
    limit: Annotated[int, typer.Option(help="at most so many", min=1)] = 100,
) -> None:
    """A page of events behind a position."""
    with refusals_told():
        content = api().get("/v1/events", after=after, limit=limit)
    tell(content, content["events"], COLUMNS)


def history(
    reservation_id: Annotated[str, typer.Argument(help="the reservation's id")],
) -> None:
    """Every event of a reservation, in order."""
    with refusals_told():
        content = api().get(f"/v1/why/{reservation_id}")
    if "story" not in content:
        fail(REFUSED, f"{reservation_id} is no reservation", f"gpuledger why {reservation_id}")
    tell({"events": content["story"]}, content["story"], COLUMNS)


@projection_verb("list")
def list_projections() -> None:
    """How far each read model is; one that stands still names the event that it cannot fold."""
    with refusals_told():
        content = api().get("/v1/projections")
    tell(content, content["projections"], ("name", "version", "seq", "poison", "hash"))


@schema_verb("list")
def list_schemas() -> None:
    """All contracts with their version, id and file."""
    rows = contracts.listed()
    tell({"schemas": rows}, rows, ("name", "version", "id", "file"))


@schema_verb("show")
def show_schema(name: Annotated[str, typer.Argument(help="such as QuotaGranted.v1")]) -> None:
    """One contract as Avro."""
    found = contracts.text(name)
    if found is None:
        fail(REFUSED, f"no contract is named {name}", "gpuledger schema list names all")
        return
    if options.json:
        print(json.dumps(json.loads(found)))  # noqa: T201 - JSON for programs
        return
    out.print(found, markup=False, highlight=False)


def _shown(value: Any) -> str:  # noqa: ANN401 - JSON
    return value if isinstance(value, str) else json.dumps(value)

"""Verbs that look under the hood: events, projections, contracts."""

import json
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from connectors.cli.console import (
    NOT_REACHABLE,
    REFUSED,
    USED_WRONGLY,
    api,
    err,
    fail,
    folder,
    group,
    options,
    out,
    refusals_told,
    tell,
)
from connectors.running.files import read_service

events, events_verb = group("events", "The log: tail, show")
projection, projection_verb = group("projection", "Read models: list, rebuild, follow")
schema, schema_verb = group("schema", "Contracts: list, show, check")


class Source(StrEnum):
    """Where events are read."""

    LOG = "log"
    KAFKA = "kafka"


def _from_kafka(after: int, limit: int) -> list[dict[str, Any]]:
    from connectors.wiring import kafka

    try:
        return kafka.events(after, limit)
    except kafka.KafkaNotConfigured as error:
        fail(USED_WRONGLY, str(error))
    except (kafka.Gap, kafka.Foreign) as error:
        fail(REFUSED, str(error), "`gpuledger audit verify --from kafka` looks at all of it")
    except kafka.KafkaError as error:
        fail(NOT_REACHABLE, f"Kafka says: {error}")
    return []


@events_verb("tail")
def tail(
    after: Annotated[int, typer.Option(help="a position of the log")] = 0,
    limit: Annotated[int, typer.Option(help="at most so many")] = 20,
    source: Annotated[
        Source, typer.Option("--from", help="the log, or its copy on Kafka")
    ] = Source.LOG,
) -> None:
    """Events behind a position; `watch` shows them live."""
    if source is Source.KAFKA:
        content = {"events": _from_kafka(after, limit)}
    else:
        with refusals_told():
            content = api().get("/v1/events", after=after, limit=limit)
    columns = ("seq", "occurred_at", "type", "stream", "principal")
    tell(content, content["events"], columns)


@events_verb("show")
def show_event(seq: Annotated[int, typer.Argument(help="its position")]) -> None:
    """One event, with everything that it says."""
    with refusals_told():
        found = api().get("/v1/events", after=seq - 1, limit=1)["events"]
    if not found or found[0]["seq"] != seq:
        fail(REFUSED, f"there is no event {seq} that you may see")
    out.print_json(json.dumps(found[0]))


@projection_verb("list")
def list_projections() -> None:
    """How far each read model is, and what stopped it if something did."""
    with refusals_told():
        content = api().get("/v1/projections")
    tell(content, content["projections"], ("name", "version", "seq", "hash", "poison"))


@projection_verb("rebuild")
def rebuild_projection(
    name: Annotated[str, typer.Argument(help="as 'projection list' names it")],
) -> None:
    """Fold a read model of the local service anew; its old rows serve until the new ones are there."""
    from connectors.wiring import stores
    from domain.journal import JournalUnavailable

    service = read_service(folder())
    if service is None:
        fail(NOT_REACHABLE, f"no service runs over {folder()}")
        return
    projection = stores.projection_named(name)
    if projection is None:
        fail(REFUSED, f"no projection is named {name}", "'gpuledger projection list' names all")
        return
    columns = (TextColumn("rebuilding"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, disable=options.json) as progress:
        task = progress.add_task("rebuilding")
        try:
            done = stores.rebuild(
                service.dsn,
                projection,
                lambda there, total: progress.update(task, completed=there, total=total),
            )
        except JournalUnavailable as error:
            fail(NOT_REACHABLE, str(error))
            return
    rows = [asdict(done)]
    tell(rows[0], rows, ("name", "version", "seq", "hash", "was_equal"))


@projection_verb("follow")
def follow_projection(
    name: Annotated[str, typer.Argument(help="as 'projection list' names it")],
    dsn: Annotated[str, typer.Option(help="the database that the read model goes into")],
) -> None:
    """Keep one read model in a database of yours, from the topic, until interrupted.

    The ledger's own database is not asked; one process for each read model, as many as you like.
    """
    from connectors.wiring import kafka
    from connectors.wiring.logs import log_as_lines
    from domain.journal import JournalUnavailable

    log_as_lines()
    try:
        raise typer.Exit(kafka.follow(name, dsn))
    except kafka.KafkaNotConfigured as error:
        fail(USED_WRONGLY, str(error))
    except (kafka.UnknownProjection, kafka.Gap, kafka.Foreign) as error:
        fail(REFUSED, str(error))
    except (kafka.KafkaError, JournalUnavailable) as error:
        fail(NOT_REACHABLE, f"{type(error).__name__}: {error}")


@schema_verb("list")
def list_schemas() -> None:
    """Every contract of this release."""
    from schemas.registry import registry

    rows = [
        {
            "name": contract.name,
            "version": contract.version,
            "id": contract.id,
            "kind": contract.kind,
            "file": contract.path.name,
        }
        for contract in registry().by_type.values()
    ]
    tell(rows, rows, ("name", "version", "id", "kind", "file"))


@schema_verb("show")
def show_schema(name: Annotated[str, typer.Argument(help="NodeJoined, or NodeJoined.v1")]) -> None:
    """One contract as it is written."""
    from schemas.registry import registry

    known = registry()
    found = known.by_type.get(name) or known.newest.get(name)
    if found is None:
        fail(REFUSED, f"no contract is named {name}", "'gpuledger schema list' names all")
        return
    out.print_json(found.path.read_text())


@schema_verb("check")
def check_schemas() -> None:
    """Whether every version of every contract can read every other one."""
    from schemas.compatibility import incompatibilities
    from schemas.registry import registry

    versions: dict[str, dict[int, Any]] = {}
    for contract in registry().by_type.values():
        text = json.loads(contract.path.read_text())
        versions.setdefault(contract.name, {})[contract.version] = text
    wrong = {name: found for name, v in versions.items() if (found := list(incompatibilities(v)))}
    if options.json:
        tell(
            {"incompatible": {name: [str(f) for f in found] for name, found in wrong.items()}},
            (),
            (),
        )
    else:
        out.print(f"{len(versions)} contracts, {len(wrong)} with versions that do not fit together")
    for name, found in wrong.items():
        err.print(f"{name}: {found[0]}", highlight=False)
    if wrong:
        raise typer.Exit(REFUSED)


def history(
    reservation_id: Annotated[str, typer.Argument(help="the reservation's id")],
) -> None:
    """Every event of a reservation, in order."""
    with refusals_told():
        content = api().get(f"/v1/why/{reservation_id}")
    if "story" not in content:
        fail(REFUSED, f"{reservation_id} is no reservation", f"gpuledger why {reservation_id}")
    tell(
        {"events": content["story"]},
        content["story"],
        ("seq", "recorded_at", "type", "stream", "principal"),
    )

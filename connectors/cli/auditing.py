"""Verbs for auditors, and for whoever has the right to be forgotten."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from connectors.cli.console import (
    NOT_REACHABLE,
    REFUSED,
    USED_WRONGLY,
    api,
    command,
    err,
    fail,
    folder,
    group,
    instant,
    options,
    out,
    refusals_told,
    tell,
)
from connectors.running.files import read_service
from domain.verdict import KnownRoot

audit, audit_verb = group("audit", "History that proves itself, and what may be forgotten of it")
directory, directory_verb = group("directory", "Who the principals are: show, set")


class Source(StrEnum):
    """Where a copy of the history lies."""

    LOG = "log"
    KAFKA = "kafka"


@audit_verb("verify")
def verify(
    source: Annotated[
        Source, typer.Option("--from", help="the log, or its copy on Kafka")
    ] = Source.LOG,
    dsn: Annotated[str, typer.Option(help="the log; the local service's when not given")] = "",
    known: Annotated[str, typer.Option(help="a root that you kept, as SIZE:ROOT")] = "",
    checkpoint: Annotated[
        Path | None, typer.Option(help="a signed checkpoint that you kept; needs --key")
    ] = None,
    key: Annotated[str, typer.Option(help="whose signature it must bear, NAME+ID+KEY")] = "",
    history: Annotated[
        Path | None, typer.Option("--folder", help="what 'audit export' wrote, instead of --from")
    ] = None,
) -> None:
    """Prove that the history is whole: all that can be made anew from its events is, and compared.

    Of the log: leaves, places, times, tiles, root, exclusion cells, the newest snapshot. Of Kafka:
    leaves, gaps, root, and each event against the log. What is printed as size and root is what to
    keep, where operators cannot write, for --known next time.
    """
    from connectors.exports.history import FolderWrong
    from connectors.wiring import auditing, kafka
    from domain.journal import JournalUnavailable

    service = read_service(folder())
    log = dsn or (service.dsn if service else None)
    root = _known_root(known) if known else None
    if checkpoint is not None:
        root = _signed_root(checkpoint, key)
    if source is Source.LOG and log is None and history is None:
        fail(NOT_REACHABLE, f"no service runs over {folder()}", "name a database with --dsn")
    try:
        if history is not None:
            verdict = auditing.verify_folder(history, root, key)
        elif source is Source.LOG:
            assert log is not None, "it was looked for"
            verdict = auditing.verify_log(log, root)
        else:
            verdict = auditing.verify_topic(log, root)
    except kafka.KafkaNotConfigured as error:
        fail(USED_WRONGLY, str(error))
    except FolderWrong as error:
        fail(REFUSED, str(error))
    except (kafka.KafkaError, JournalUnavailable) as error:
        fail(NOT_REACHABLE, f"{type(error).__name__}: {error}")
    rows = [
        *({"verdict": "holds", "what": what} for what in verdict.checked),
        *({"verdict": "FAULT", "what": what} for what in verdict.faults),
        *({"verdict": "not excluded", "what": what} for what in verdict.not_excluded),
    ]
    content = asdict(verdict) | {"source": source.value, "holds": verdict.holds}
    tell(content, rows, ("verdict", "what"), f"size and root {verdict.events}:{verdict.root}")
    if not verdict.holds:
        raise typer.Exit(REFUSED)


def _known_root(text: str) -> KnownRoot:
    size, _, root = text.partition(":")
    try:
        return KnownRoot(int(size), bytes.fromhex(root))
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not SIZE:ROOT, such as 1000:9f86d0...") from error


def _signed_root(file: Path, key: str) -> KnownRoot:
    """What a checkpoint says, once its signature holds."""
    from connectors.keys.signing import verified
    from domain.checkpoint import BadNote, verifier_key_of

    if not key:
        fail(USED_WRONGLY, "name the key that signed it with --key", "'gpuledger audit key'")
    try:
        found = verified(file.read_text(), verifier_key_of(key))
    except OSError as error:
        fail(USED_WRONGLY, f"{file}: {error.strerror}")
    except (BadNote, UnicodeDecodeError) as error:
        fail(REFUSED, f"{file}: {error}")
    return KnownRoot(found.size, found.root)


@audit_verb("export")
def export(
    to: Annotated[Path, typer.Argument(help="a folder that is not there yet")],
) -> None:
    """The whole log with its contracts and a signed checkpoint, for docs/verify.py and --folder."""
    from connectors.cli.database import database
    from connectors.embedded.folder import FolderRefused, read_secret
    from connectors.exports.history import FolderWrong
    from connectors.wiring import auditing
    from connectors.wiring.proving import SIGNING, signer_of

    columns = (TextColumn("exporting"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with database() as dsn, Progress(*columns, console=err, disable=options.json) as progress:
        task = progress.add_task("exporting")
        try:
            signer = signer_of(read_secret(folder(), SIGNING))
            done = auditing.export_history(
                dsn, to, signer, lambda at, of: progress.update(task, completed=at, total=of)
            )
        except (FolderWrong, FolderRefused) as error:
            fail(REFUSED, str(error))
            return
    row = {"folder": str(to), "events": done.events, "root": done.root.hex()}
    tell(row, [row], tuple(row))


@audit_verb("replay")
def replay(
    as_of: Annotated[str, typer.Option(help="the moment: 2026-01-31T12:00, today 09:00, ISO")],
    as_known_at: Annotated[
        str, typer.Option(help="by the facts that were recorded until then; now if none")
    ] = "",
    zone: Annotated[str, typer.Option(help="an IANA zone for both")] = "",
) -> None:
    """Who held what at a past moment, under which quota, at which use and cost, as known then or now."""
    from connectors.cli.database import database
    from connectors.wiring.replaying import LogHistory
    from schemas.json_form import instant_of

    at = instant_of(instant(as_of, zone) or _now())
    known = instant_of(instant(as_known_at, zone) or _now()) if as_known_at else None
    with database() as dsn:
        found = LogHistory(dsn).replay(at, known)
    if options.json:
        tell(found, (), ())
        return
    columns = ("node_id", "first_milli", "width_milli", "tenant_id", "reservation_id", "end")
    tell(found, found["holders"], columns, f"Holders at {found['as_of']}, as known {_known(found)}")
    tell(found, found["quota"], ("tenant_id", "pool_id", "nominal_milli", "held_milli"), "Quota")
    tell(
        found, found["usage"], ("pool_id", "tenant_id", "state", "gpu_microseconds"), "Used so far"
    )
    tell(found, found["charges"], ("account_id", "currency", "cost"), "Charged so far, exact")
    out.print(f"state {found['state_hash']} at event {found['seq']}", style="dim", highlight=False)


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _known(found: dict[str, Any]) -> str:
    return "now" if found["as_known_at"] == "now" else f"at {found['as_known_at']}"


@audit_verb("explain")
def explain(
    reservation: Annotated[str, typer.Argument(help="its id")],
) -> None:
    """Who did what to a reservation, when, why, by which plan and under which quota, with positions."""
    from connectors.cli.database import database
    from connectors.wiring.replaying import LogHistory

    with database() as dsn:
        steps = LogHistory(dsn).explain(reservation)
    if not steps:
        fail(REFUSED, f"there is no reservation {reservation}")
    rows = [
        {
            **step,
            "plan": step["plan"]["seq"] if step["plan"] else "",
            "quota": ", ".join(f"{b['tenant_id']} #{b['seq']}" for b in step["quota"]),
        }
        for step in steps
    ]
    tell(
        {"reservation_id": reservation, "steps": steps},
        rows,
        ("seq", "recorded_at", "what", "who", "because", "plan", "quota"),
        f"Reservation {reservation}",
    )


@audit_verb("key")
def show_key() -> None:
    """The public key that signs checkpoints: keep it, with a checkpoint, where operators cannot write."""
    with refusals_told():
        content = api().get("/v1/log/key")
    if options.json:
        tell(content, (), ())
    else:
        out.print(content["key"], highlight=False)


@audit_verb("checkpoint")
def show_checkpoint(
    to: Annotated[Path | None, typer.Option("--out", help="write it to a file")] = None,
) -> None:
    """Size and root of the log now, signed: a C2SP checkpoint, for --checkpoint next time."""
    with refusals_told():
        note = api().text("/v1/log/checkpoint")
    if to is not None:
        to.write_text(note)
    if options.json:
        tell({"checkpoint": note, "file": str(to) if to else None}, (), ())
    else:
        out.print(note if to is None else f"{note.splitlines()[1]} events in {to}", highlight=False)


@audit_verb("proof")
def prove(
    seq: Annotated[int, typer.Option(min=0, help="that this event is in the log")] = 0,
    earlier: Annotated[int, typer.Option("--from", min=0, help="that it began as this size")] = 0,
    size: Annotated[int, typer.Option(min=0, help="in the log of this size; now if none")] = 0,
) -> None:
    """An inclusion or consistency proof as JSON (RFC 6962), for whoever keeps a checkpoint."""
    if bool(seq) == bool(earlier):
        fail(USED_WRONGLY, "name an event with --seq, or an earlier size with --from")
    path = "/v1/log/inclusion" if seq else "/v1/log/consistency"
    asked = {"seq": seq} if seq else {"from": earlier}
    with refusals_told():
        content = api().get(path, **asked, size=size or None)
    print(json.dumps(content))  # noqa: T201 - JSON for programs


Subject = Annotated[str, typer.Argument(help="a principal's id, as events and `whoami` name it")]


@audit_verb("erase")
def erase(
    subject: Subject,
    reason: Annotated[str, typer.Option(help="why, as a short code; it is recorded")],
) -> None:
    """Forget a principal's name and the notes that it wrote; what it did, and every proof, stays."""
    command(f"/v1/subjects/{subject}/erase", {"reason": reason})


@directory_verb("show")
def show(subject: Subject) -> None:
    """Who a principal is."""
    with refusals_told():
        entry = api().get(f"/v1/directory/{subject}")
    tell(entry, [entry], ("subject_id", "name", "email"))


@directory_verb("set")
def describe(
    subject: Subject,
    name: Annotated[str, typer.Option(help="its name; never in the log")],
    email: Annotated[str, typer.Option(help="its address; never in the log")] = "",
) -> None:
    """Write who a principal is, beside the log."""
    with refusals_told():
        entry = api().put(f"/v1/directory/{subject}", {"name": name, "email": email})
    tell(entry, [entry], ("subject_id", "name", "email"))

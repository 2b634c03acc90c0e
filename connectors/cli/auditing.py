"""Verbs for auditors, and for whoever has the right to be forgotten."""

from typing import Annotated

import typer

from connectors.cli.console import api, command, group, refusals_told, tell

audit, audit_verb = group("audit", "History that proves itself, and what may be forgotten of it")
directory, directory_verb = group("directory", "Who the principals are: show, set")

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

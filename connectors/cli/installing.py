"""Verbs that install: init, for a service whose roles run apart."""

import os
from typing import Annotated

import typer

from connectors.cli.console import REFUSED, fail, folder, tell
from connectors.embedded.folder import DataFolder, FolderRefused
from connectors.running.files import SOCKET_BYTES_MAX, Service, read_service, write_service
from connectors.tokens.tokens import Tokens


def init(
    dsn: Annotated[str, typer.Option(help="the PostgreSQL that holds the log")],
    url: Annotated[str, typer.Option(help="where the HTTP face will be")] = "http://127.0.0.1:8420",
) -> None:
    """Make or upgrade the stores of a service whose roles are then run by `serve`.

    The data folder says where the database, the sequencer's socket and the HTTP face are, and
    keeps a token for each role but the tenant's; all roles need to see it. Safe to run again:
    tokens and secrets stay what they are.
    """
    from connectors.wiring.stores import prepare

    try:
        data = DataFolder.open(folder(), clock="wall")
    except FolderRefused as error:
        fail(REFUSED, str(error))
    try:
        socket = _socket(data)
        applied = prepare(dsn)
        data.secret("fingerprint")
        data.secret("checkpoint")
        known = read_service(data.path)
        tokens = known.tokens if known is not None else _issue(data)
        write_service(data.path, Service(dsn, socket, url, os.getpid(), tokens))
    finally:
        data.close()
    content = {"data": str(data.path), "applied": applied, "roles": sorted(tokens)}
    rows = [
        {"what": "data folder", "is": str(data.path)},
        {"what": "migrations applied", "is": ", ".join(applied) or "none, up to date"},
        {"what": "tokens for", "is": ", ".join(sorted(tokens))},
    ]
    tell(content, rows, ("what", "is"))


def _socket(data: DataFolder) -> str:
    path = str(data.path / "sequencer.sock")
    if len(path) > SOCKET_BYTES_MAX:
        fail(REFUSED, f"the path {path} is too long for a socket", "give a shorter --data")
    return path


def _issue(data: DataFolder) -> dict[str, str]:
    tokens = Tokens({})
    issued = tokens.issue_to_all(data.secret("principals"))
    tokens.write(data.path / "tokens.json")
    return issued

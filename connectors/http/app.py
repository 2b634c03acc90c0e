"""The application: every command as a POST, every read as a GET, each with its principal."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import psycopg
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from psycopg_pool import PoolTimeout
from starlette.exceptions import HTTPException

from connectors.http import (
    directory,
    feed,
    headroom,
    history,
    metrics,
    pages,
    planning,
    proofs,
    queueing,
    reads,
    virtual_time,
)
from connectors.http.commanding import Commands, Gateway
from connectors.http.denials import Denials
from connectors.http.directory import Directory
from connectors.http.guard import Guard, Tokens
from connectors.http.history import History
from connectors.http.notes import Sealer
from connectors.http.planning import Copies
from connectors.http.problems import bad_field, problem
from connectors.http.proofs import Prover
from connectors.http.reading import ReadModels
from connectors.http.verbs import ROUTES
from domain.commands import RequestReservation
from domain.journal import JournalUnavailable
from schemas.json_form import BadField
from schemas.registry import Registry


class Subjects(Sealer, Directory, Protocol):
    """Keys and names of principals, beside the log."""


def create_app(
    gateway: Gateway,
    read_models: ReadModels,
    tokens: Tokens,
    registry: Registry,
    subjects: Subjects,
    copies: Copies,
    prover: Prover,
    past: History,
    *,
    is_virtual: bool = False,
) -> FastAPI:
    """The HTTP face over a gateway, read models, tokens, what is known of their holders, copies, proofs and the past.

    Under a virtual clock callers bring the time with them.
    """

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        await read_models.pool.open(wait=False)
        yield
        await read_models.pool.close()

    app = FastAPI(title="gpuledger", version="1", docs_url=None, redoc_url=None, lifespan=life)
    app.add_middleware(Guard, tokens=tokens)
    _answers(app)
    commands = Commands(gateway, registry, subjects, is_virtual=is_virtual)
    for route in sorted(ROUTES, key=lambda route: route.command is RequestReservation):
        commands.add(app, route)
    app.post("/v1/batch", summary="Many commands, each with its own key and outcome")(
        commands.batch
    )
    denials = Denials(read_models, commands)
    reads.add(app, read_models, commands, registry, subjects, denials)
    proofs.add(app, prover)
    history.add(app, past)
    headroom.add(app, copies)
    feed.add(app, read_models, denials)
    planning.add(app, read_models, registry, copies, denials)
    queueing.add(app, copies)
    directory.add(app, subjects)
    pages.add(app, read_models, tokens)
    metrics.add(app, read_models)
    if is_virtual:
        virtual_time.add(app, commands)
    return app


def _answers(app: FastAPI) -> None:
    """What is answered when something is wrong, for every route alike."""

    @app.exception_handler(BadField)
    async def malformed(_: Request, error: BadField) -> JSONResponse:
        return bad_field(error)

    @app.exception_handler(HTTPException)
    async def no_route(_: Request, error: HTTPException) -> JSONResponse:
        kind = _KINDS.get(error.status_code, "malformed")
        return problem(error.status_code, kind, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> JSONResponse:
        return problem(500, "internal", f"the service stumbled: {type(error).__name__}")

    async def away(_: Request, error: Exception) -> JSONResponse:
        detail = f"the database cannot be reached: {str(error).strip() or 'no answer'}"
        return problem(503, "unavailable", detail, {"Retry-After": "1"})

    app.add_exception_handler(psycopg.OperationalError, away)
    app.add_exception_handler(PoolTimeout, away)
    app.add_exception_handler(JournalUnavailable, away)


_KINDS = {
    404: "not-found",
    405: "method-not-allowed",
    413: "too-large",
    503: "unavailable",
}
"""Problems that come of a status alone."""

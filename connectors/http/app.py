"""The application: every command as a POST, every read as a GET, each with its principal."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import psycopg
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from psycopg_pool import PoolTimeout
from starlette.middleware.base import RequestResponseEndpoint

from connectors.http import metrics, pages, reads
from connectors.http.commanding import BODY_BYTES_MAX, Commands, Gateway
from connectors.http.problems import bad_field, problem
from connectors.http.reading import ReadModels
from connectors.http.verbs import ROUTES
from domain.principal import Principal
from schemas.json_form import BadField
from schemas.registry import Registry


class Tokens(Protocol):
    """Who holds which token."""

    def principal(self, token: str) -> Principal | None:
        """Whose it is."""
        ...


def create_app(
    gateway: Gateway, read_models: ReadModels, tokens: Tokens, registry: Registry
) -> FastAPI:
    """The HTTP face over a gateway, read models and tokens."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        await read_models.pool.open(wait=False)
        yield
        await read_models.pool.close()

    app = FastAPI(title="gpuledger", version="1", docs_url=None, redoc_url=None, lifespan=life)
    app.state.tokens = tokens
    _guard(app)
    commands = Commands(gateway, registry)
    for route in ROUTES:
        commands.add(app, route)
    app.post("/v1/batch", summary="Many commands, each with its own key and outcome")(
        commands.batch
    )
    reads.add(app, read_models, commands, registry)
    pages.add(app, read_models)
    metrics.add(app, read_models)
    return app


def _guard(app: FastAPI) -> None:
    """Limits, principals and the answers when the stores are away, for every route alike."""

    @app.middleware("http")
    async def identify(request: Request, call_next: RequestResponseEndpoint) -> Response:
        if int(request.headers.get("content-length") or 0) > BODY_BYTES_MAX:
            detail = f"a body has at most {BODY_BYTES_MAX} bytes"
            return problem(413, "too-large", detail, limit="body_bytes_max", max=BODY_BYTES_MAX)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        principal = request.app.state.tokens.principal(token) if token else None
        if principal is None and scheme and not _is_open(request.url.path):
            return problem(401, "unauthenticated", "no principal has this token")
        request.state.principal = principal
        if principal is None and not _is_open(request.url.path):
            headers = {"WWW-Authenticate": "Bearer"}
            return problem(401, "unauthenticated", "send a token as a bearer", headers)
        with metrics.timed(request):
            return await call_next(request)

    @app.exception_handler(BadField)
    async def malformed(_: Request, error: BadField) -> JSONResponse:
        return bad_field(error)

    async def away(_: Request, error: Exception) -> JSONResponse:
        detail = f"the database cannot be reached: {str(error).strip() or 'no answer'}"
        return problem(503, "unavailable", detail, {"Retry-After": "1"})

    app.add_exception_handler(psycopg.OperationalError, away)
    app.add_exception_handler(PoolTimeout, away)


def _is_open(path: str) -> bool:
    """What needs no token: health, metrics, the pages that explain."""
    return path in {"/", "/docs", "/openapi.json", "/metrics", "/v1/health", "/style.css"}

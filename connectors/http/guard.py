"""What every call passes first: its size, who it is from, and how long it took."""

import time
from typing import Protocol

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from connectors.http import metrics
from connectors.http.problems import problem
from domain.principal import Principal

BODY_BYTES_MAX = 1 << 20

_OPEN = frozenset(
    {"/", "/docs", "/openapi.json", "/metrics", "/v1/health", "/style.css", "/calendar"}
)
"""What needs no token: health, metrics, the pages that explain, and the one that asks for it."""


class Tokens(Protocol):
    """Who holds which token."""

    def principal(self, token: str) -> Principal | None:
        """Whose it is."""
        ...


class Guard:
    """A plain ASGI layer, for it stands before every booking: no task and no stream of its own."""

    def __init__(self, app: ASGIApp, tokens: Tokens) -> None:
        """Before an application."""
        self._app = app
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a call in with its principal, or answer it at once."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > BODY_BYTES_MAX:
            detail = f"a body has at most {BODY_BYTES_MAX} bytes"
            refused = problem(413, "too-large", detail, limit="body_bytes_max", max=BODY_BYTES_MAX)
            await refused(scope, receive, send)
            return
        scheme, _, token = headers.get("authorization", "").partition(" ")
        is_bearer = scheme.lower() == "bearer" and token != ""
        principal = self._tokens.principal(token) if is_bearer else None
        if principal is None and scope["path"] not in _OPEN:
            detail = "no principal has this token" if is_bearer else "send a token as a bearer"
            challenge = {"WWW-Authenticate": "Bearer"}
            await problem(401, "unauthenticated", detail, challenge)(scope, receive, send)
            return
        scope.setdefault("state", {})["principal"] = principal
        begun = time.perf_counter()
        try:
            await self._app(scope, receive, send)
        finally:
            metrics.observe(scope["method"], time.perf_counter() - begun)

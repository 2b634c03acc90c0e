"""Pages for people: the front page, the calendar, and the reference of the API."""

import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, select_autoescape

from connectors.http.commanding import bytes_of
from connectors.http.guard import Tokens
from connectors.http.reading import ReadModels
from domain.access import READ_VERBS
from domain.timespan import MICROSECONDS

HOURS_SHOWN = 24
STRANGER = "Nobody who may see the calendar has this token."
_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=select_autoescape()
)


COOKIE = "gpuledger_token"
"""A browser's token, for the calendar's own path and for nothing else: no command hears it."""


def add(app: FastAPI, models: ReadModels, tokens: Tokens) -> None:
    """Register the pages; none needs anything from outside."""

    async def front() -> Response:
        """What is here."""
        return HTMLResponse(_TEMPLATES.get_template("front.html").render())

    async def docs() -> Response:
        """Every route, from the OpenAPI description."""
        page = _TEMPLATES.get_template("docs.html")
        return HTMLResponse(page.render(paths=app.openapi()["paths"]))

    async def style() -> Response:
        """The one style sheet."""
        text = (Path(__file__).parent / "templates" / "style.css").read_text()
        return Response(text, media_type="text/css")

    async def calendar(request: Request) -> Response:
        """The next day as a Gantt chart, a line per node; without a token, a place to give one."""
        token = request.cookies.get(COOKIE, "")
        principal = request.state.principal or (tokens.principal(token) if token else None)
        if principal is None or principal.role not in READ_VERBS["calendar"].roles:
            return _sign_in("" if principal is None and not token else STRANGER, 401)
        now = time.time_ns() // 1000
        start = now - now % (3600 * MICROSECONDS)
        end = start + HOURS_SHOWN * 3600 * MICROSECONDS
        rows = await models.calendar(principal, start, end)
        page = _TEMPLATES.get_template("calendar.html")
        return HTMLResponse(page.render(lines=_lines(rows, start, end), hours=range(HOURS_SHOWN)))

    async def sign_in(request: Request) -> Response:
        """Keep the token that a form brings, if it is somebody's, and show the calendar."""
        form = parse_qs((await bytes_of(request)).decode(errors="replace"))
        token = "".join(form.get("token", ())).strip()
        if not token or tokens.principal(token) is None:
            return _sign_in(STRANGER, 401)
        answer = RedirectResponse("/calendar", 303)
        answer.set_cookie(COOKIE, token, path="/calendar", httponly=True, samesite="strict")
        return answer

    app.add_api_route("/calendar", sign_in, methods=["POST"], include_in_schema=False)
    for path, page in (
        ("/", front),
        ("/docs", docs),
        ("/style.css", style),
        ("/calendar", calendar),
    ):
        app.add_api_route(path, page, methods=["GET"], include_in_schema=False)


def _sign_in(problem: str, status: int) -> Response:
    page = _TEMPLATES.get_template("sign_in.html")
    return HTMLResponse(page.render(problem=problem), status)


def _lines(rows: list[dict[str, Any]], start: int, end: int) -> dict[str, list[dict[str, Any]]]:
    """For each node its bars, in percent of the time shown and of the node."""
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        left = max(row["start"], start)
        right = min(row["end"], end)
        lines.setdefault(row["node_id"], []).append(
            {
                "left": 100 * (left - start) / (end - start),
                "width": 100 * (right - left) / (end - start),
                "top": row["first_milli"] / 80,
                "height": row["width_milli"] / 80,
                "tenant": row["tenant_id"],
                "state": row["state"],
                "id": row["reservation_id"],
                "hue": sum(row["tenant_id"].encode()) * 47 % 360,
            }
        )
    return dict(sorted(lines.items()))

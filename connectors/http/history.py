"""History for auditors: any past moment, as known then or now, and how a reservation came about."""

import asyncio
from typing import Any, Protocol

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from connectors.http.allowed import add_reads, told_of
from connectors.http.problems import problem
from connectors.http.query import instant
from domain.timespan import Instant
from schemas.json_form import BadField

HISTORY = {"/v1/replay": "replay", "/v1/accounts/{reservation_id}": "account"}
"""Which path is which verb of READ_VERBS; each is a method of the same name below."""
EVENTS_MAX = 250_000
"""A log of so many events is read for a call; a longer one by the command line."""


class History(Protocol):
    """Where the log is read. Everything raises `JournalUnavailable`."""

    def events(self) -> int:
        """How many events there are."""
        ...

    def replay(self, as_of: Instant, known_at: Instant | None) -> dict[str, Any]:
        """A moment, as it was known at an instant or is known now."""
        ...

    def explain(self, reservation_id: str) -> list[dict[str, Any]]:
        """Every step of a reservation."""
        ...


def add(app: FastAPI, history: History) -> None:
    """Register both."""
    reads = _History(history)
    add_reads(app, HISTORY, reads)


class _History:
    def __init__(self, history: History) -> None:
        self._history = history

    async def replay(self, request: Request) -> Response:
        """Holders, quota, use and cost at `as_of`, as known at `as_known_at` or now; the state's hash."""
        as_of, known_at = instant(request, "as_of", 0), instant(request, "as_known_at", 0)
        if not as_of:
            raise BadField("/as_of", "say of which moment, as an RFC 3339 instant")
        too_long = await self._too_long()
        if too_long is not None:
            return too_long
        known = Instant(known_at) if known_at else None
        return JSONResponse(await asyncio.to_thread(self._history.replay, Instant(as_of), known))

    async def account(self, request: Request) -> Response:
        """Who did what to a reservation, when, why, by which plan and under which quota, with positions."""
        too_long = await self._too_long()
        if too_long is not None:
            return too_long
        name = request.path_params["reservation_id"]
        steps = await asyncio.to_thread(self._history.explain, name)
        if not steps:
            return problem(404, "not-found", f"there is no reservation {name}", reason="not-found")
        return JSONResponse({"reservation_id": name, "steps": steps})

    async def _too_long(self) -> Response | None:
        events = await asyncio.to_thread(self._history.events)
        if events <= EVENTS_MAX:
            return None
        detail = f"the log has {events} events: ask `gpuledger audit replay` or `audit explain`"
        return problem(422, "limit", detail, limit="events_max", max=EVENTS_MAX, reason="limit")


TOLD = told_of(HISTORY, _History)
"""What each read tells, in a line, by its verb."""

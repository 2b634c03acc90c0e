"""Time that the caller brings: only a service on a virtual clock takes it, for stories and traces."""

from typing import Protocol

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from connectors.http.problems import of_outcome, problem
from connectors.http.query import moment
from domain.principal import Principal, Role
from domain.submission import TICK, Outcome, Submission
from domain.timespan import Instant
from schemas.json_form import BadField, instant_text

HEADER = "Virtual-Time"
"""An RFC 3339 instant: when the call is made, on a virtual clock."""
ADVANCE = "/v1/clock/advance"


class Submits(Protocol):
    """The way to the sequencer, for one submission."""

    async def submit(self, submission: Submission) -> Outcome:
        """Its durable outcome."""
        ...


def time_of(request: Request, *, is_virtual: bool) -> Instant | None:
    """When a call is made, if it says so. Raises `BadField` where the clock is the machine's."""
    text = request.headers.get(HEADER, "")
    if not text:
        return None
    if not is_virtual:
        raise BadField(f"/{HEADER}", "this service keeps the time itself; send no such header")
    return Instant(moment(text, HEADER))


def add(app: FastAPI, commands: Submits) -> None:
    """Let operators bring the clock on."""

    async def advance(request: Request) -> Response:
        """Bring the virtual clock to the instant of the header; what is due happens."""
        who: Principal = request.state.principal
        if who.role is not Role.OPERATOR:
            return problem(403, "forbidden", f"{who.role.value} may not move the clock")
        at = time_of(request, is_virtual=True)
        if at is None:
            raise BadField(f"/{HEADER}", "say to when")
        outcome = await commands.submit(Submission(who, "tick", TICK, b"", at))
        return of_outcome(outcome, who) or JSONResponse({"now": instant_text(at)})

    app.add_api_route(ADVANCE, advance, methods=["POST"], name="advance", include_in_schema=False)

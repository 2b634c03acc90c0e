"""Commands over HTTP: from JSON to outcomes, one at a time or many in one call."""

from collections.abc import Sequence
from typing import Any, Protocol

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from connectors.http.problems import of_outcome, problem, refused
from connectors.http.verbs import Route
from domain.commands import COMMANDS, Command
from domain.principal import Principal
from domain.submission import Outcome, OutcomeKind, Submission
from schemas.json_form import BadField, json_schema, parse, render
from schemas.registry import Registry

BODY_BYTES_MAX = 1 << 20
BATCH_COMMANDS_MAX = 500


class Gateway(Protocol):
    """The way to the sequencer."""

    async def submit(self, submissions: Sequence[Submission]) -> Sequence[Outcome]:
        """Durable outcomes, in order."""
        ...


class Commands:
    """Commands from JSON to outcomes."""

    def __init__(self, gateway: Gateway, registry: Registry) -> None:
        """Over a gateway."""
        self._gateway = gateway
        self._registry = registry

    def add(self, app: FastAPI, route: Route) -> None:
        """A POST for a command."""

        async def post(request: Request) -> Response:
            key = request.headers.get("idempotency-key", "")
            if not key:
                detail = "every command needs an Idempotency-Key header, new for each intent"
                return problem(400, "malformed", detail, pointer="", field="Idempotency-Key")
            values = {**await _json(request), **request.path_params}
            _expect(request, route.command, values)
            command = parse(route.command, values)
            dry_run = request.query_params.get("dry_run") == "true"
            submission = self.submission(request.state.principal, key, command, dry_run=dry_run)
            (outcome,) = await self._gateway.submit([submission])
            return self.answer(outcome, request.state.principal, route.status)

        app.add_api_route(
            route.path,
            post,
            methods=["POST"],
            name=route.command.__name__,
            summary=(route.command.__doc__ or "").split("\n")[0],
            openapi_extra=_described(route),
        )

    def submission(
        self, principal: Principal, key: str, command: Command, *, dry_run: bool = False
    ) -> Submission:
        """A command as it goes to the sequencer."""
        contract, body = self._registry.encode(command)
        return Submission(principal, key, contract.type, body, dry_run=dry_run)

    async def submit(self, submission: Submission) -> Outcome:
        """One outcome."""
        (outcome,) = await self._gateway.submit([submission])
        return outcome

    def answer(self, outcome: Outcome, reader: Principal, status: int) -> Response:
        """An outcome as a response: 202 with a place to look when it waits for a plan."""
        failed = of_outcome(outcome, reader)
        if failed is not None:
            return failed
        content = self.told(outcome)
        headers = {}
        if outcome.kind is OutcomeKind.NO_EFFECT:
            status = 200
        place = _place(outcome)
        if place:
            content["id"] = place.rsplit("/", 1)[1]
            headers["Location"] = f"/v1/{place}"
        if any(fact.type.startswith("ReservationQueued.") for fact in outcome.facts):
            status = 202
        return JSONResponse(content, status, headers)

    def told(self, outcome: Outcome) -> dict[str, Any]:
        """An outcome as JSON."""
        return {
            "outcome": outcome.kind.value,
            "command_id": outcome.command_id,
            "seq_from": outcome.seq_from,
            "seq_to": outcome.seq_to,
            "repeat": outcome.is_repeat,
            "facts": [
                {
                    "seq": fact.seq,
                    "type": fact.type,
                    "stream": fact.stream,
                    "version": fact.stream_version,
                    **render(self._registry.decode(fact.type, fact.body)),
                }
                for fact in outcome.facts
            ],
        }

    async def batch(self, request: Request) -> Response:
        """Commands in order, each decided by itself; the answers stand in the same order."""
        entries = (await _json(request)).get("commands")
        if not isinstance(entries, list):
            raise BadField("/commands", "must be a list")
        if len(entries) > BATCH_COMMANDS_MAX:
            raise BadField("/commands", f"must have at most {BATCH_COMMANDS_MAX} commands")
        principal: Principal = request.state.principal
        submissions = [self._entry(principal, at, entry) for at, entry in enumerate(entries)]
        outcomes = await self._gateway.submit(submissions)
        brief = request.query_params.get("brief") == "true"
        return JSONResponse(
            {"outcomes": [self._brief(o, principal, brief=brief) for o in outcomes]}
        )

    def _entry(self, principal: Principal, at: int, entry: Any) -> Submission:  # noqa: ANN401 - JSON
        pointer = f"/commands/{at}"
        if not isinstance(entry, dict) or not isinstance(entry.get("key"), str):
            raise BadField(f"{pointer}/key", "every command needs a key")
        kind = COMMANDS.get(entry.get("command", ""))
        if kind is None:
            raise BadField(f"{pointer}/command", "no such command")
        command = parse(kind, entry.get("body", {}), f"{pointer}/body")
        return self.submission(principal, entry["key"], command)

    def _brief(self, outcome: Outcome, reader: Principal, *, brief: bool) -> dict[str, Any]:
        if outcome.refusal is not None:
            more = refused(outcome.refusal, reader, outcome.command_id)
            return {"outcome": outcome.kind.value, **more}
        if outcome.problem:
            return {"outcome": outcome.kind.value, "detail": outcome.problem}
        if brief:
            place = _place(outcome)
            told = {"outcome": outcome.kind.value, "seq_to": outcome.seq_to}
            return told | ({"id": place.rsplit("/", 1)[1]} if place else {})
        return self.told(outcome)


def _place(outcome: Outcome) -> str:
    """Where what a command brought into being is found."""
    for fact in outcome.facts:
        name = fact.type.split(".")[0]
        if name in {"ReservationConfirmed", "ReservationHeld", "ReservationQueued"}:
            return "reservations/" + fact.stream.split("/")[1]
    return ""


def _expect(request: Request, command: type[Command], values: dict[str, Any]) -> None:
    """An If-Match header is the version that the caller last saw."""
    seen = request.headers.get("if-match", "").strip('"')
    if not seen or "expected_version" not in command.__dataclass_fields__:
        return
    if not seen.isdigit():
        raise BadField("/If-Match", "must be an ETag of a reservation")
    values["expected_version"] = int(seen)


async def _json(request: Request) -> dict[str, Any]:
    """The JSON object of a body; an empty body is an empty one."""
    body = await request.body()
    if len(body) > BODY_BYTES_MAX:
        raise BadField("", f"a body has at most {BODY_BYTES_MAX} bytes")
    if not body:
        return {}
    try:
        values = await request.json()
    except (ValueError, RecursionError) as error:
        raise BadField("", f"is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise BadField("", "must be an object")
    return values


def _described(route: Route) -> dict[str, Any]:
    """A command's body and key, for the OpenAPI page."""
    return {
        "requestBody": {"content": {"application/json": {"schema": json_schema(route.command)}}},
        "parameters": [
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": True,
                "schema": {"type": "string", "maxLength": 255},
            },
            *(
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in route.path.replace("}", "{").split("{")[1::2]
            ),
        ],
    }

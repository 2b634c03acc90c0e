"""Commands over HTTP: from JSON to outcomes, one at a time or many in one call."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Route as PlainRoute

from connectors.http.guard import BODY_BYTES_MAX
from connectors.http.notes import Sealer, seal_note
from connectors.http.problems import of_outcome, problem, refused
from connectors.http.query import flag, whole
from connectors.http.seeing import own_facts
from connectors.http.verbs import Route
from connectors.http.virtual_time import time_of
from domain.commands import COMMANDS, Command
from domain.principal import Principal
from domain.submission import Outcome, OutcomeKind, Submission
from schemas.json_form import BadField, json_schema, parse, pointer_to, render, text_of
from schemas.registry import Registry

BATCH_COMMANDS_MAX = 500


class Gateway(Protocol):
    """The way to the sequencer."""

    async def submit(self, submissions: Sequence[Submission]) -> Sequence[Outcome]:
        """Durable outcomes, in order."""
        ...

    async def is_reachable(self) -> bool:
        """Whether it takes commands."""
        ...


class Commands:
    """Commands from JSON to outcomes."""

    def __init__(
        self, gateway: Gateway, registry: Registry, sealer: Sealer, *, is_virtual: bool = False
    ) -> None:
        """Over a gateway; notes are sealed before they go anywhere.

        Under a virtual clock callers say when they call.
        """
        self._is_virtual = is_virtual
        self._gateway = gateway
        self._sealer = sealer
        self._registry = registry

    def add(self, app: FastAPI, route: Route) -> None:
        """A POST for a command."""

        async def post(request: Request) -> Response:
            key = request.headers.get("idempotency-key", "")
            if not key:
                detail = "every command needs an Idempotency-Key header, new for each intent"
                return problem(400, "malformed", detail, pointer="", field="Idempotency-Key")
            values = await body_of(request)
            _from_path(request, values)
            _expect(request, route.command, values)
            await seal_note(self._sealer, request.state.principal, route.command, values)
            command = parse(route.command, values)
            dry_run = flag(request, "dry_run")
            submission = self.submission(request, key, command, dry_run=dry_run)
            (outcome,) = await self._gateway.submit([submission])
            status = 200 if dry_run else route.status
            return self.answer(outcome, request.state.principal, command, status)

        app.add_api_route(
            route.path,
            post,
            methods=["POST"],
            name=route.command.__name__,
            summary=(route.command.__doc__ or "").split("\n")[0],
            openapi_extra=_described(route),
        )
        # The framework's own route describes; this one, found before it, answers: a handler that
        # takes the bare request needs none of what the framework solves for each call.
        app.router.routes.insert(0, PlainRoute(route.path, post, methods=["POST"]))

    def submission(
        self,
        request: Request,
        key: str,
        command: Command,
        *,
        dry_run: bool = False,
        principal: Principal | None = None,
    ) -> Submission:
        """A command as it goes to the sequencer: the caller's, unless it is another principal's."""
        contract, body = self._registry.encode(command)
        at = time_of(request, is_virtual=self._is_virtual)
        who = principal or request.state.principal
        return Submission(who, key, contract.type, body, at, dry_run=dry_run)

    async def is_reachable(self) -> bool:
        """Whether the sequencer takes commands."""
        return await self._gateway.is_reachable()

    async def submit(self, submission: Submission) -> Outcome:
        """One outcome."""
        (outcome,) = await self._gateway.submit([submission])
        return outcome

    def answer(
        self, outcome: Outcome, reader: Principal, command: Command, status: int
    ) -> Response:
        """An outcome as a response: 202 with a place to look when it waits for a plan."""
        failed = of_outcome(outcome, reader)
        if failed is not None:
            return failed
        content = self.told(outcome, reader, command)
        headers = {}
        if outcome.kind is OutcomeKind.NO_EFFECT:
            status = 200
        place = _place(outcome)
        if place and outcome.seq_to:
            content["id"] = place.rsplit("/", 1)[1]
            headers["Location"] = f"/v1/{place}"
            if any(fact.type.startswith("ReservationQueued.") for fact in outcome.facts):
                status = 202
        return JSONResponse(content, status, headers)

    def told(self, outcome: Outcome, reader: Principal, command: Command) -> dict[str, Any]:
        """An outcome as JSON, with what of it the reader may see."""
        facts = [(fact, self._registry.decode(fact.type, fact.body)) for fact in outcome.facts]
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
                    **render(decoded),
                }
                for fact, decoded in own_facts(facts, reader, command, outcome.command_id)
            ],
        }

    async def batch(self, request: Request) -> Response:
        """Commands in order, each decided by itself; the answers stand in the same order."""
        values = await body_of(request)
        entries = values.pop("commands", None)
        _none_left(values, "")
        if not isinstance(entries, list):
            raise BadField("/commands", "must be a list")
        if len(entries) > BATCH_COMMANDS_MAX:
            raise BadField("/commands", f"must have at most {BATCH_COMMANDS_MAX} commands")
        principal: Principal = request.state.principal
        brief = flag(request, "brief")
        asked = [await self._entry(principal, at, entry) for at, entry in enumerate(entries)]
        outcomes = await self._gateway.submit(
            [self.submission(request, key, command) for key, command in asked]
        )
        if outcomes and all(o.kind is OutcomeKind.UNAVAILABLE for o in outcomes):
            away = of_outcome(outcomes[0], principal)
            assert away is not None, "an unavailable outcome is a problem"
            return away
        told = [
            self._brief(outcome, principal, command, brief=brief)
            for outcome, (_, command) in zip(outcomes, asked, strict=True)
        ]
        return JSONResponse({"outcomes": told})

    async def _entry(
        self,
        principal: Principal,
        at: int,
        entry: Any,  # noqa: ANN401 - JSON
    ) -> tuple[str, Command]:
        pointer = f"/commands/{at}"
        if not isinstance(entry, dict) or "key" not in entry:
            raise BadField(f"{pointer}/key", "every command needs a key")
        _none_left(entry.keys() - {"key", "command", "body"}, pointer)
        kind = COMMANDS.get(text_of(entry.get("command", ""), f"{pointer}/command"))
        if kind is None:
            raise BadField(f"{pointer}/command", "no such command")
        key = text_of(entry["key"], f"{pointer}/key")
        body = entry.get("body", {})
        if isinstance(body, dict):
            try:
                await seal_note(self._sealer, principal, kind, body)
            except BadField as error:
                raise error.below(f"{pointer}/body") from None
        return key, parse(kind, body, f"{pointer}/body")

    def _brief(
        self, outcome: Outcome, reader: Principal, command: Command, *, brief: bool
    ) -> dict[str, Any]:
        if outcome.refusal is not None:
            more = refused(outcome.refusal, reader, outcome.command_id)
            return {"outcome": outcome.kind.value, **more}
        if outcome.problem:
            return {"outcome": outcome.kind.value, "detail": outcome.problem}
        if brief:
            place = _place(outcome)
            told = {"outcome": outcome.kind.value, "seq_to": outcome.seq_to}
            return told | ({"id": place.rsplit("/", 1)[1]} if place else {})
        return self.told(outcome, reader, command)


def _none_left(names: Iterable[str], pointer: str) -> None:
    """Whatever is left over is no field."""
    for name in names:
        raise BadField(pointer_to(pointer, name), "no such field")


def _from_path(request: Request, values: dict[str, Any]) -> None:
    """Fields that stand in the path; a body that says otherwise contradicts it."""
    for name, value in request.path_params.items():
        if values.setdefault(name, value) != value:
            raise BadField(f"/{name}", f"the path says {value}")


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
    values["expected_version"] = whole(seen, "If-Match")


async def bytes_of(request: Request) -> bytes:
    """A body, which may not be too long."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            raise HTTPException(413, f"a body has at most {BODY_BYTES_MAX} bytes")
    return bytes(body)


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object of a body; an empty body is an empty one."""
    body = await bytes_of(request)
    if not body:
        return {}
    try:
        values = json.loads(body)
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

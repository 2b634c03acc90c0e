"""Reads: status, fleet, reservations, calendar, quota, usage, events, why."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Collection
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

from connectors.http.allowed import add_reads, told_of
from connectors.http.commanding import Commands
from connectors.http.denials import Denials
from connectors.http.notes import Sealer, open_notes
from connectors.http.problems import facts_for, problem, refused
from connectors.http.query import instant, number, whole
from connectors.http.reading import ReadModels, Rows, instants_as_text
from domain import commands as c
from domain.access import COMMAND_VERBS, READ_VERBS
from domain.ids import PoolId, TenantId
from domain.principal import Principal, Role
from domain.refusals import Reason
from domain.sizes import Shape, Size
from domain.submission import OutcomeKind, RefusalTold
from domain.timespan import MICROSECONDS, Instant
from schemas.event_json import event_json
from schemas.json_form import BadField, instant_text
from schemas.registry import Registry

POLL_SECONDS = 0.5
HOUR = 3600 * MICROSECONDS
STREAM_BATCH = 500
WAIT_SECONDS_MAX = 10.0

READS = {
    "/v1/whoami": "whoami",
    "/v1/status": "status",
    "/v1/pools": "pools",
    "/v1/nodes": "nodes",
    "/v1/node-health": "node_health",
    "/v1/tenants": "tenants",
    "/v1/quota": "quota",
    "/v1/reservations": "reservations",
    "/v1/reservations/{reservation_id}": "reservation",
    "/v1/calendar": "calendar",
    "/v1/availability": "availability",
    "/v1/usage": "usage",
    "/v1/price-books": "prices",
    "/v1/periods": "periods",
    "/v1/pool-hours": "pool_hours",
    "/v1/why/{subject}": "why",
    "/v1/events": "events",
    "/v1/projections": "projections",
}
"""Which path is which verb of READ_VERBS; each is a method of the same name below."""


def add(
    app: FastAPI,
    models: ReadModels,
    commands: Commands,
    registry: Registry,
    sealer: Sealer,
    denials: Denials,
) -> None:
    """Register every read."""
    reads = _Reads(models, commands, registry, sealer, denials)
    add_reads(app, READS, reads)
    app.add_api_route("/v1/health", reads.health, methods=["GET"], name="health")


async def caught_up(models: ReadModels, projection: str, min_seq: int) -> None:
    """Read your writes: wait until a projection has reached `min_seq`. Raises `HTTPException`."""
    if not await _reached(models, projection, min_seq):
        detail = f"{projection} has not reached min_seq yet"
        raise HTTPException(503, detail, {"Retry-After": "1"})


async def _reached(models: ReadModels, projection: str, wanted: int) -> bool:
    for _ in range(int(WAIT_SECONDS_MAX / 0.02)):
        if await models.seq(projection) >= wanted:
            return True
        await asyncio.sleep(0.02)
    return False


class _Reads:
    def __init__(
        self,
        models: ReadModels,
        commands: Commands,
        registry: Registry,
        sealer: Sealer,
        denials: Denials,
    ) -> None:
        self._models = models
        self._commands = commands
        self._denials = denials
        self._registry = registry
        self._sealer = sealer

    async def health(self) -> Response:
        """Whether the service can decide and be read; needs no token."""
        rows = await self._models.rows(
            "SELECT (SELECT seq FROM log_head WHERE shard = 0) AS head,"
            " (SELECT min(seq) FROM projection) AS projected,"
            " (SELECT expires_at > now() FROM writer_lease WHERE shard = 0) AS writing"
        )
        state = rows[0]
        healthy = bool(state["writing"]) and await self._commands.is_reachable()
        content = {"status": "ok" if healthy else "no writer", "head": state["head"] or 0}
        content["projected"] = state["projected"] or 0
        return JSONResponse(content, 200 if healthy else 503)

    async def whoami(self, request: Request) -> Response:
        """Who am I, and what may I do."""
        who: Principal = request.state.principal
        verbs = {
            name for name, v in (*COMMAND_VERBS.items(), *READ_VERBS.items()) if who.role in v.roles
        }
        return JSONResponse(
            {
                "principal": who.id,
                "role": who.role.value,
                "tenant": who.tenant_id,
                "may": sorted(verbs),
            }
        )

    async def _caught_up(self, request: Request, projection: str) -> None:
        await caught_up(self._models, projection, number(request, "min_seq", 0))

    async def status(self, request: Request) -> Response:
        """The fleet in one screen: pools, and what is held of them now."""
        await self._caught_up(request, "calendar")
        rows = await self._models.status(request.state.principal)
        return JSONResponse({"pools": rows})

    async def pools(self, request: Request) -> Response:
        """All pools."""
        await self._caught_up(request, "fleet")
        rows = await self._models.rows("SELECT * FROM pool ORDER BY pool_id")
        return JSONResponse({"pools": rows})

    async def nodes(self, request: Request) -> Response:
        """All nodes and their health."""
        await self._caught_up(request, "fleet")
        return JSONResponse({"nodes": instants_as_text(await self._models.nodes())})

    async def node_health(self, request: Request) -> Response:
        """What ails nodes: to a tenant only those on which it holds units now."""
        await self._caught_up(request, "fleet")
        rows = await self._models.node_health(request.state.principal)
        return JSONResponse({"nodes": instants_as_text(rows)})

    async def tenants(self, request: Request) -> Response:
        """All tenants."""
        await self._caught_up(request, "fleet")
        rows = await self._models.rows("SELECT * FROM tenant ORDER BY tenant_id")
        return JSONResponse({"tenants": rows})

    async def quota(self, request: Request) -> Response:
        """Quota grants."""
        await self._caught_up(request, "fleet")
        rows = await self._models.quota(request.state.principal)
        return JSONResponse({"quota": instants_as_text(rows)})

    async def reservations(self, request: Request) -> Response:
        """Reservations, newest first; `state` filters."""
        await self._caught_up(request, "reservations")
        state = request.query_params.get("state", "")
        limit = number(request, "limit", 100)
        rows = await self._models.reservations(request.state.principal, state, limit)
        return JSONResponse({"reservations": instants_as_text(rows)})

    async def reservation(self, request: Request) -> Response:
        """One reservation with its units; its ETag is the version of its last intent."""
        await self._caught_up(request, "reservations")
        reservation_id = request.path_params["reservation_id"]
        row = await self._models.reservation(request.state.principal, reservation_id)
        if row is None:
            return await self._denials.nothing(
                request, "reservation", "reservation", reservation_id
            )
        units = instants_as_text(await self._models.units(reservation_id))
        content = instants_as_text([row])[0] | {"units": units}
        return JSONResponse(content, headers={"ETag": f'"{row["intent_version"]}"'})

    async def calendar(self, request: Request) -> Response:
        """What is held between two instants, piece by piece."""
        await self._caught_up(request, "calendar")
        start, end = _span(request)
        rows = await self._models.calendar(request.state.principal, start, end)
        return JSONResponse({"calendar": instants_as_text(rows)})

    async def usage(self, request: Request) -> Response:
        """GPU-microseconds by pool, tenant and state between two instants."""
        await self._caught_up(request, "usage")
        rows = await self._models.usage(request.state.principal, *_span(request))
        return JSONResponse({"usage": rows})

    async def prices(self, request: Request) -> Response:
        """Price books and their versions."""
        await self._caught_up(request, "billing")
        rows = instants_as_text(await self._models.prices(request.state.principal))
        for row in rows:
            row["rates"] = json.loads(row["rates"])
            row["tenant_ids"] = _named(json.loads(row["tenant_ids"]), request.state.principal)
        return JSONResponse({"price_books": rows})

    async def periods(self, request: Request) -> Response:
        """Billing periods that are closing or closed."""
        await self._caught_up(request, "billing")
        rows = await self._models.periods(request.state.principal)
        return JSONResponse({"periods": instants_as_text(rows)})

    async def pool_hours(self, request: Request) -> Response:
        """Pool-hours that are closed, between two instants."""
        await self._caught_up(request, "billing")
        rows = await self._models.pool_hours(*_span(request))
        return JSONResponse({"pool_hours": instants_as_text(rows)})

    async def projections(self, _: Request) -> Response:
        """How far each read model is."""
        rows = await self._models.rows(
            "SELECT name, version, seq, encode(hash, 'hex') AS hash, poison"
            " FROM projection ORDER BY name"
        )
        return JSONResponse({"projections": rows, "relay": await self._models.relay()})

    async def availability(self, request: Request) -> Response:
        """Whether an ask fits, and the nearest windows in which it would; nothing is booked."""
        who: Principal = request.state.principal
        query = request.query_params
        tenant = query.get("tenant_id") or who.tenant_id
        if not tenant or not query.get("pool_id"):
            raise BadField("/pool_id", "name a pool, and a tenant unless the token says it")
        start = instant(request, "start", 0)
        command = c.RequestReservation(
            TenantId(tenant),
            PoolId(query["pool_id"]),
            Size(
                number(request, "gpus", 0),
                number(request, "nodes", 0),
                number(request, "share_milli", 0),
            ),
            Instant(start) if start else None,
            duration_seconds=number(request, "duration_seconds", 3600),
            shape=Shape(tuple(filter(None, query.get("models", "").split(",")))),
            offers_max=number(request, "limit", 10),
        )
        submission = self._commands.submission(request, "availability", command, dry_run=True)
        outcome = await self._commands.submit(submission)
        if outcome.kind is OutcomeKind.UNAVAILABLE:
            return problem(503, "unavailable", outcome.problem, {"Retry-After": "1"})
        if outcome.refusal is None:
            return JSONResponse({"fits": True, "offers": []})
        return JSONResponse({"fits": False, **refused(outcome.refusal, who, outcome.command_id)})

    async def why(self, request: Request) -> Response:
        """The reason behind a reservation, or behind a command that was refused."""
        who: Principal = request.state.principal
        subject = request.path_params["subject"]
        row = await self._models.reservation(who, subject)
        if row is not None:
            events = await self._models.stream(f"reservation/{subject}")
            story = [self._event(event) for event in events]
            return JSONResponse({"reservation": instants_as_text([row])[0], "story": story})
        request_row = await self._models.request(subject)
        mine = request_row is not None and (
            who.role is not Role.TENANT or request_row["principal_id"] == who.id
        )
        if request_row is None or not mine:
            return await self._denials.nothing(request, "why", "reservation or command", subject)
        answer = instants_as_text([request_row])[0]
        evidence = json.loads(answer["evidence"])
        if answer["kind"] == "refused":
            reason = Reason[answer["reason"].upper().replace("-", "_")]
            evidence = facts_for(RefusalTold(reason, evidence, ()), who)
        answer["evidence"] = evidence
        answer["offers"] = [
            [instant_text(s), instant_text(e)] for s, e in json.loads(answer["offers"])
        ]
        return JSONResponse({"request": answer})

    def _event(self, row: dict[str, Any]) -> dict[str, Any]:
        return event_json(bytes(row["envelope"]), bytes(row["body"]), self._registry)

    async def events(self, request: Request) -> Response:
        """Events behind a position; as a live stream where `text/event-stream` is accepted."""
        last = request.headers.get("last-event-id", "")
        after = whole(last, "Last-Event-ID") if last else number(request, "after", 0)
        who: Principal = request.state.principal
        if "text/event-stream" in request.headers.get("accept", ""):
            return StreamingResponse(
                self._live(request, who, after), media_type="text/event-stream"
            )
        rows = await self._models.events(after, number(request, "limit", 100))
        return JSONResponse({"events": [event for _, event in await self._seen(who, rows)]})

    async def _seen(self, who: Principal, rows: Rows) -> list[tuple[int, dict[str, Any]]]:
        """The events that a reader may see, each with its position."""
        events = [self._event(row) for row in rows]
        if who.role is Role.TENANT and events:
            named = [e["fact"]["reservation_id"] for e in events if "reservation_id" in e["fact"]]
            await _reached(self._models, "reservations", events[-1]["seq"])
            mine = await self._models.own_reservations(who, named)
            events = [e for e in events if _may_see(who, e, mine)]
        await open_notes(self._sealer, who, [event["fact"] for event in events])
        return [(event["seq"], event) for event in events]

    async def _live(self, request: Request, who: Principal, after: int) -> AsyncIterator[str]:
        while not await request.is_disconnected():
            rows = await self._models.events(after, STREAM_BATCH)
            for seq, event in await self._seen(who, rows):
                yield f"id: {seq}\nevent: {event['type']}\ndata: {json.dumps(event)}\n\n"
            after = rows[-1]["seq"] if rows else after
            if not rows:
                yield ": waiting\n\n"
                await asyncio.sleep(POLL_SECONDS)


TOLD = told_of(READS, _Reads)
"""What each read tells, in a line, by its verb."""


def _named(tenant_ids: list[str], reader: Principal) -> list[str]:
    """The tenants that a price book names, as far as a reader may know them."""
    if reader.role is not Role.TENANT:
        return tenant_ids
    return [name for name in tenant_ids if name == reader.tenant_id]


def _may_see(who: Principal, event: dict[str, Any], mine: Collection[str]) -> bool:
    """A tenant sees facts of its own, and none of where it was turned away.

    Reports from hardware and orders to give way name more than the reservation: only facts on
    the reservation's own stream are its tenant's.
    """
    if event["type"].startswith("AccessDenied."):
        return False
    if event["fact"].get("tenant_id") == who.tenant_id:
        return True
    return event["stream"].removeprefix("reservation/") in mine


def _span(request: Request) -> tuple[int, int]:
    """The instants `from` and `to` of a query; the day around now when they are not given."""
    now = time.time_ns() // 1000
    return instant(request, "from", now - HOUR), instant(request, "to", now + 23 * HOUR)

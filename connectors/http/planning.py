"""Reads of the plan: what it looks like, why it is so, and what it would be if.

Each is answered from a copy of the ledger, in a thread of its own; one at a time, so that a
question that takes long keeps others who ask about plans waiting, and nobody else.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from connectors.http import charts
from connectors.http.allowed import add_reads, told_of
from connectors.http.denials import Denials
from connectors.http.explained import explained, supposed
from connectors.http.problems import problem
from connectors.http.query import flag, instant, number
from connectors.http.reading import ReadModels
from domain import commands as c
from domain.facts import Fact
from domain.facts.request import CommandRefused
from domain.facts.reservation import (
    ReservationConfirmed,
    ReservationHeld,
    UnitsAssigned,
    UnitsReassigned,
    UnitsReleased,
)
from domain.ids import NodeId, PoolId, ReservationId, TenantId
from domain.principal import Principal, Role
from domain.refusals import Asked
from domain.sizes import ReservationClass, Shape, Size
from domain.states import OVER
from domain.timespan import MICROSECONDS, Instant, Timespan
from domain.units import MILLI_PER_GPU, Segment
from projections.gantt import Gantt, svg
from schemas.envelope import decode_envelope
from schemas.json_form import BadField, instant_text
from schemas.registry import Registry
from solvers.child import solve_in_child
from solvers.explaining import explain, want_of
from solvers.supposing import NotSupposable, Supposed, Supposition, suppose
from solvers.trial import Copy

PLANS = {
    "/v1/plan": "plans",
    "/v1/plan/explain/{subject}": "explain",
    "/v1/plan/what-if": "what_if",
}
"""Which path is which verb of READ_VERBS; each is a method of the same name below."""

SPAN_SECONDS = 24 * 3600
SPAN_SECONDS_MAX = 366 * 86_400
LOST_MAX = 1_000
SOLVE_SECONDS_MAX = 20.0
"""Of the planner's child, for what would wait."""
SVG = "image/svg+xml"

T = TypeVar("T")


class Copies(Protocol):
    """Where a copy of the ledger is had."""

    def at_head(self) -> AbstractContextManager[Copy]:
        """The copy at the head of the log. Raises `JournalUnavailable`."""
        ...


def add(
    app: FastAPI, models: ReadModels, registry: Registry, copies: Copies, denials: Denials
) -> None:
    """Register the reads of the plan."""
    plans = _Plans(models, registry, copies, denials)
    add_reads(app, PLANS, plans)


class _Plans:
    def __init__(
        self, models: ReadModels, registry: Registry, copies: Copies, denials: Denials
    ) -> None:
        self._models, self._registry, self._copies = models, registry, copies
        self._denials = denials

    async def _on_copy(self, work: Callable[[Copy], T]) -> T:
        def run() -> T:
            with self._copies.at_head() as copy:
                return work(copy)

        return await asyncio.to_thread(run)

    async def plans(self, request: Request) -> Response:
        """A pool's plan between `from` and `to`: lines, bars, down time, moves; `svg=true` draws it."""
        pool_id, span = _pool(request), _span(request)
        draws = flag(request, "svg")

        def names(copy: Copy) -> list[str] | None:
            pool = copy.ledger.pools.get(pool_id)
            if pool is None:
                return None
            return sorted({bar.name for bar in charts.bars_of(copy.ledger, pool, span)})

        shown = await self._on_copy(names)
        if shown is None:
            return _no("pool", pool_id)
        moves = [self._fact(row) for row in await self._models.unit_changes(shown)]

        def chart(copy: Copy) -> tuple[Gantt, int]:
            pool = copy.ledger.pools[pool_id]
            return charts.plan_chart(copy.ledger, pool, span, copy.now, moves), copy.seq

        gantt, seq = await self._on_copy(chart)
        if draws:
            return Response(svg(gantt), media_type=SVG)
        return JSONResponse(charts.as_json(gantt) | {"pool_id": pool_id, "as_of_seq": seq})

    async def explain(self, request: Request) -> Response:
        """Why a reservation sits where it sits, or why a request got no place, and the nearest yes."""
        who: Principal = request.state.principal
        subject = request.path_params["subject"]
        asked = await self._asked(who, subject)

        def work(copy: Copy) -> dict[str, Any] | None:
            reservation = copy.ledger.reservations.get(ReservationId(subject))
            if reservation is not None and _may_see(who, reservation.tenant_id):
                want = want_of(copy, reservation)
                state = reservation.state
                placed = reservation if reservation.holdings else None
                base = {"subject": subject, "kind": "reservation", "state": state.value}
                is_over = state in OVER
            elif asked is not None:
                want, placed, is_over = want_of(copy, asked[0]), None, False
                base = {"subject": subject, "kind": "request", "state": f"refused: {asked[1]}"}
            else:
                return None
            if want is None:
                return base | {"gone": "its pool or tenant is gone"}
            if is_over or want.span.end <= copy.now:
                return base | {"over": instant_text(want.span.end)}
            return base | explained(explain(copy, want, placed), who)

        found = await self._on_copy(work)
        if found is None:
            return await self._denials.nothing(
                request, "explain", "reservation or refused request", subject
            )
        if found["kind"] == "reservation":
            found["placed"] = await self._placed(subject)
        return JSONResponse(found)

    async def what_if(self, request: Request) -> Response:
        """What would come of lost nodes, other quota or one more request; nothing is written."""
        what, span = _supposition(request), _span(request)
        draws = flag(request, "svg")

        def work(copy: Copy) -> tuple[Supposed, str] | None:
            pool = copy.ledger.pools.get(what.pool_id)
            if pool is None:
                return None
            found = suppose(
                copy, what, lambda asked: solve_in_child(asked, wall_seconds=SOLVE_SECONDS_MAX)
            )
            if not draws:
                return found, ""
            chart = charts.supposed_chart(copy.ledger, pool, span, found, what.lost, copy.now)
            return found, svg(chart)

        try:
            done = await self._on_copy(work)
        except NotSupposable as error:
            return problem(422, "not-supposable", str(error), reason="malformed")
        if done is None:
            return _no("pool", what.pool_id)
        if draws:
            return Response(done[1], media_type=SVG)
        return JSONResponse(supposed(done[0]))

    def _fact(self, row: dict[str, Any]) -> Fact:
        envelope = decode_envelope(bytes(row["envelope"]))
        fact: Fact = self._registry.decode(envelope.type, bytes(row["body"]))
        return fact

    async def _asked(self, who: Principal, subject: str) -> tuple[Asked, str] | None:
        """What a refused request asked for and why it was refused, if the reader sent it."""
        for event in await self._models.stream(f"request/{subject}"):
            envelope = decode_envelope(bytes(event["envelope"]))
            fact = self._fact(event)
            mine = who.role is not Role.TENANT or envelope.principal == who.id
            if mine and isinstance(fact, CommandRefused) and fact.asked is not None:
                return fact.asked, fact.reason
        return None

    async def _placed(self, reservation_id: str) -> list[dict[str, Any]]:
        """How it came to its units: each step with who found them, and from where to where."""
        steps: list[dict[str, Any]] = []
        for row in await self._models.stream(f"reservation/{reservation_id}"):
            envelope = decode_envelope(bytes(row["envelope"]))
            for by, left, taken in _unit_steps(self._fact(row), envelope.principal):
                at = instant_text(envelope.occurred_at)
                steps.append({"seq": row["seq"], "at": at, "by": by, "left": left, "taken": taken})
        return steps


TOLD = told_of(PLANS, _Plans)
"""What each read tells, in a line, by its verb."""


def _unit_steps(fact: Fact, principal: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """By whom or what, the nodes that were left, and those that were taken."""
    match fact:
        case ReservationConfirmed(segments=segments) | ReservationHeld(segments=segments):
            yield ("plan" if principal == "planner" else "placer"), [], _nodes(segments)
        case UnitsAssigned(segments=segments, cause=cause):
            yield cause, [], _nodes(segments)
        case UnitsReassigned(left=left, taken=taken, cause=cause):
            yield cause, sorted({p.node_id for p in left}), sorted({p.node_id for p in taken})
        case UnitsReleased(pieces=pieces, cause=cause):
            yield cause, sorted({p.node_id for p in pieces}), []
        case _:
            return


def _nodes(segments: tuple[Segment, ...]) -> list[str]:
    return sorted({piece.node_id for each in segments for piece in each.pieces})


def _may_see(who: Principal, tenant_id: TenantId) -> bool:
    return who.role is not Role.TENANT or who.tenant_id == tenant_id


def _no(kind: str, subject: str) -> Response:
    return problem(404, "not-found", f"there is no {kind} {subject}", reason="not-found")


def _pool(request: Request) -> PoolId:
    name = request.query_params.get("pool_id")
    if not name:
        raise BadField("/pool_id", "name a pool")
    return PoolId(name)


def _span(request: Request) -> Timespan:
    """From `from` to `to`; the next day when not given."""
    now = time.time_ns() // 1000
    start = instant(request, "from", now - now % (3600 * MICROSECONDS))
    end = instant(request, "to", start + SPAN_SECONDS * MICROSECONDS)
    if not start < end <= start + SPAN_SECONDS_MAX * MICROSECONDS:
        raise BadField("/to", f"must lie behind from, by at most {SPAN_SECONDS_MAX} seconds")
    return Timespan(Instant(start), Instant(end))


def _supposition(request: Request) -> Supposition:
    """What a query supposes. Raises `BadField`."""
    query = request.query_params
    lost = tuple(NodeId(name) for name in query.get("lost", "").split(",") if name)
    if len(lost) > LOST_MAX:
        raise BadField("/lost", f"at most {LOST_MAX} nodes")
    quota: dict[TenantId, int] = {}
    for part in filter(None, query.get("quota", "").split(",")):
        tenant, _, gpus = part.partition("=")
        if not (tenant and gpus.isascii() and gpus.isdigit() and len(gpus) < 10):
            raise BadField("/quota", "write tenant=GPUs, with commas between them")
        quota[TenantId(tenant)] = int(gpus) * MILLI_PER_GPU
    found = Supposition(_pool(request), lost, quota, _request(request))
    if not (found.lost or found.quota or found.request):
        raise BadField("/lost", "suppose something: lost, quota, or a size and a tenant_id")
    return found


def _request(request: Request) -> c.RequestReservation | None:
    query = request.query_params
    size = Size(*(number(request, name, 0) for name in ("gpus", "nodes", "share_milli")))
    if size == Size():
        return None
    if not query.get("tenant_id"):
        raise BadField("/tenant_id", "name the tenant that would ask")
    start = instant(request, "start", 0)
    try:
        klass = ReservationClass(query.get("class", "guaranteed"))
    except ValueError as error:
        raise BadField("/class", str(error)) from error
    return c.RequestReservation(
        TenantId(query["tenant_id"]),
        _pool(request),
        size,
        Instant(start) if start else None,
        duration_seconds=number(request, "duration_seconds", 3600),
        klass=klass,
        shape=Shape(
            tuple(filter(None, query.get("models", "").split(","))),
            same_level=query.get("same_level") or None,
        ),
    )

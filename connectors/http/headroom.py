"""What is left of quota, and which limit binds; what of the grants looks odd."""

import asyncio
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from connectors.http.allowed import add_reads, told_of
from connectors.http.planning import Copies
from connectors.http.problems import problem
from connectors.http.query import instant, number
from domain.headroom import Usable, oddities, usable
from domain.ids import PoolId, TenantId
from domain.ledger import Ledger
from domain.principal import Principal, Role
from domain.quota import Headroom
from domain.sizes import ReservationClass
from domain.timespan import MICROSECONDS, Instant, Timespan
from schemas.json_form import BadField, instant_text

HEADROOM = {"/v1/quota/usable": "usable_quota", "/v1/quota/oddities": "quota_oddities"}
"""Which path is which verb of READ_VERBS; each is a method of the same name below."""
CLASSES = (ReservationClass.GUARANTEED, ReservationClass.BORROWED)
SECONDS_MAX = 10 * 366 * 86_400


def add(app: FastAPI, copies: Copies) -> None:
    """Register both."""
    reads = _Headroom(copies)
    add_reads(app, HEADROOM, reads)


class _Headroom:
    def __init__(self, copies: Copies) -> None:
        self._copies = copies

    async def usable_quota(self, request: Request) -> Response:
        """What a tenant may still book of a pool from `start` on for `duration_seconds`, and what binds it."""
        who: Principal = request.state.principal
        tenant_id = TenantId(request.query_params.get("tenant_id") or who.tenant_id or "")
        pool_id = PoolId(request.query_params.get("pool_id") or "")
        if not tenant_id or not pool_id:
            raise BadField("/pool_id", "name a pool, and a tenant unless the token says it")
        start, seconds = instant(request, "start", 0), number(request, "duration_seconds", 3600)
        if not 0 < seconds <= SECONDS_MAX:
            raise BadField("/duration_seconds", f"must be 1 to {SECONDS_MAX}")

        def work() -> dict[str, Any] | None:
            with self._copies.at_head() as copy:
                if not _may_ask(copy.ledger, who, tenant_id) or pool_id not in copy.ledger.pools:
                    return None
                begin = Instant(start or copy.now)
                span = Timespan(begin, Instant(begin + seconds * MICROSECONDS))
                found = [usable(copy.ledger, tenant_id, pool_id, span, each) for each in CLASSES]
                window = {"start": instant_text(span.start), "end": instant_text(span.end)}
                return window | {"usable": [_usable(each, who) for each in found]}

        content = await asyncio.to_thread(work)
        if content is None:
            detail = f"there is no tenant {tenant_id} or no pool {pool_id}"
            return problem(404, "not-found", detail, reason="not-found")
        return JSONResponse({"tenant_id": tenant_id, "pool_id": pool_id, **content})

    async def quota_oddities(self, _: Request) -> Response:
        """Grants that somebody should look at: children beyond parents, promises beyond capacity, ..."""

        def work() -> list[dict[str, Any]]:
            with self._copies.at_head() as copy:
                return [
                    {
                        "kind": each.kind,
                        "pool_id": each.pool_id,
                        "tenant_id": each.tenant_id,
                        "milli": each.milli,
                        "limit_milli": each.limit_milli,
                    }
                    for each in oddities(copy.ledger, copy.now)
                ]

        return JSONResponse({"oddities": await asyncio.to_thread(work)})


TOLD = told_of(HEADROOM, _Headroom)
"""What each read tells, in a line, by its verb."""


def _may_ask(ledger: Ledger, who: Principal, tenant_id: TenantId) -> bool:
    if tenant_id not in ledger.tenants:
        return False
    if who.role is not Role.TENANT:
        return True
    return who.tenant_id is not None and ledger.is_within(tenant_id, who.tenant_id)


def _usable(found: Usable, reader: Principal) -> dict[str, Any]:
    """By role: a tenant sees what is left of those above it, and nothing of who uses the rest."""
    mine = [_level(each) for each in found.levels if _sees(reader, each)]
    binding = found.binding
    told = None
    if binding is not None:
        told = {"tenant_id": binding.tenant_id, "left_milli": binding.left_milli}
        told |= {"at": instant_text(binding.at)}
        if not _sees(reader, binding):
            told["tenant_id"] = "an ancestor"
    return {"class": found.klass.value, "milli": found.milli, "binding": told, "levels": mine}


def _sees(reader: Principal, level: Headroom) -> bool:
    return reader.role is not Role.TENANT or level.tenant_id == reader.tenant_id


def _level(level: Headroom) -> dict[str, Any]:
    return {
        "tenant_id": level.tenant_id,
        "limit_milli": level.limit_milli,
        "used_milli": level.used_milli,
        "left_milli": level.left_milli,
        "at": instant_text(level.at),
    }

"""The queue of a pool, as its readers may see it."""

import asyncio
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from connectors.http.allowed import add_reads, told_of
from connectors.http.planning import Copies
from connectors.http.problems import problem
from domain.fairness import Share
from domain.ids import PoolId
from domain.principal import Principal, Role
from schemas.json_form import BadField, instant_text
from solvers.queueing import Place, queue
from solvers.trial import Copy

QUEUES = {"/v1/queue": "queue"}
"""Which path is which verb of READ_VERBS; a method of the same name below."""


def add(app: FastAPI, copies: Copies) -> None:
    """Register it."""
    add_reads(app, QUEUES, _Queue(copies))


class _Queue:
    def __init__(self, copies: Copies) -> None:
        self._copies = copies

    async def queue(self, request: Request) -> Response:
        """Who waits in a pool: each one's position in its class, the grounds for it, and when it could start."""
        name = request.query_params.get("pool_id")
        if not name:
            raise BadField("/pool_id", "name a pool")
        who: Principal = request.state.principal

        def work(copy: Copy) -> dict[str, Any] | None:
            pool = copy.ledger.pools.get(PoolId(name))
            if pool is None:
                return None
            places = queue(
                copy, pool, lambda tenant: who.role is not Role.TENANT or tenant == who.tenant_id
            )
            half_life = pool.policy.fairness_half_life_seconds
            return {
                "pool_id": pool.id,
                "as_of_seq": copy.seq,
                "order": "dominant-share" if half_life else "arrival",
                "half_life_seconds": half_life,
                "waiting": [_told(place) for place in places],
            }

        def run() -> dict[str, Any] | None:
            with self._copies.at_head() as copy:
                return work(copy)

        found = await asyncio.to_thread(run)
        if found is None:
            return problem(404, "not-found", f"there is no pool {name}", reason="not-found")
        return JSONResponse(found)


TOLD = told_of(QUEUES, _Queue)
"""What the read tells, in a line, by its verb."""


def _told(place: Place) -> dict[str, Any]:
    asked = place.waiting.reservation
    estimate = place.start_estimate
    return {
        "reservation_id": asked.id,
        "tenant_id": asked.tenant_id,
        "class": asked.klass.value,
        "position": place.waiting.position,
        "milli": asked.milli,
        "start": instant_text(asked.start),
        "end": instant_text(asked.end),
        "waits_since": instant_text(asked.waits_since) if asked.waits_since else None,
        "start_estimate": instant_text(estimate) if estimate is not None else None,
        "share": _share(place.waiting.share),
    }


def _share(share: Share | None) -> dict[str, Any] | None:
    if share is None:
        return None
    return {
        "dominant": share.dominant,
        "dominant_ppm": share.dominant_ppm,
        "used_gpu_seconds": dict(share.used),
        "capacity_gpu_seconds": dict(share.capacity),
    }

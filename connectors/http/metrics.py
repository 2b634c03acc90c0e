"""Prometheus metrics: requests by method, and how far the read models are."""

import psycopg
from fastapi import FastAPI
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest
from psycopg_pool import PoolTimeout

from connectors.http.reading import ReadModels

REGISTRY = CollectorRegistry()
SECONDS = Histogram(
    "gpuledger_http_request_seconds", "Time to answer a request", ["method"], registry=REGISTRY
)
DENIED = Counter(
    "gpuledger_http_denied", "Reads of what is not the reader's own", registry=REGISTRY
)
DATABASE_UP = Gauge("gpuledger_database_up", "1 while the database answers", registry=REGISTRY)
HEAD = Gauge("gpuledger_log_seq", "The last position of the log", registry=REGISTRY)
LAG = Gauge(
    "gpuledger_projection_lag_events",
    "Events that a read model has not folded yet",
    ["projection"],
    registry=REGISTRY,
)
RELAY_LAG = Gauge(
    "gpuledger_relay_lag_events", "Events that are not on Kafka yet", registry=REGISTRY
)
RELAY_LAG_SECONDS = Gauge(
    "gpuledger_relay_lag_seconds",
    "How long ago the first event was recorded that is not on Kafka yet",
    registry=REGISTRY,
)
RELAY_HALTED = Gauge(
    "gpuledger_relay_halted", "1 while topic and log contradict each other", registry=REGISTRY
)


def observe(method: str, seconds: float) -> None:
    """Count a request and how long it took."""
    SECONDS.labels(method).observe(seconds)


def add(app: FastAPI, models: ReadModels) -> None:
    """Register `/metrics`."""

    async def refresh() -> None:
        rows = await models.rows(
            "SELECT p.name, h.seq AS head, h.seq - p.seq AS lag FROM projection p, log_head h"
            " WHERE h.shard = 0"
        )
        for row in rows:
            HEAD.set(row["head"])
            LAG.labels(row["name"]).set(row["lag"])
        for row in await models.relay():
            RELAY_LAG.set(row["lag"])
            RELAY_LAG_SECONDS.set(row["lag_seconds"])
            RELAY_HALTED.set(bool(row["halted"]))

    async def metrics() -> Response:
        """Metrics for Prometheus; those of the log are the last known ones while it is away."""
        try:
            await refresh()
            DATABASE_UP.set(1)
        except (psycopg.OperationalError, PoolTimeout):
            DATABASE_UP.set(0)
        return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)

    app.add_api_route("/metrics", metrics, methods=["GET"], include_in_schema=False)

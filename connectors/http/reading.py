"""What readers ask of the read models, as SQL with the reader's tenant built in."""

from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from domain.principal import Principal, Role
from schemas.json_form import instant_text

ROWS_MAX = 1_000

_INSTANTS = frozenset({"start", "end", "until", "since", "hour", "recorded_at"})

Rows = list[dict[str, Any]]

_FEED = (
    "SELECT r.reservation_id, r.tenant_id, r.pool_id, r.klass, r.state, r.milli, r.short_milli,"
    " r.start, CASE WHEN r.state IN ('given-back', 'released') THEN coalesce((SELECT max(c.\"end\")"
    ' FROM calendar c WHERE c.reservation_id = r.reservation_id), r.start) ELSE r."end" END AS "end",'
    " r.intent_version, r.open_ended, j.recorded_at"
    " FROM reservation r JOIN journal j ON j.shard = 0 AND j.seq = r.seq"
)
"""Reservations with their real end, and when the last fact about each was recorded."""


@dataclass(slots=True)
class ReadModels:
    """The read models of a service, over a pool of connections."""

    pool: AsyncConnectionPool[AsyncConnection[dict[str, Any]]]

    @classmethod
    def of(cls, dsn: str) -> "ReadModels":
        """Connect when first asked."""
        pool: AsyncConnectionPool[AsyncConnection[dict[str, Any]]] = AsyncConnectionPool(
            dsn,
            min_size=1,
            max_size=8,
            open=False,
            timeout=3.0,
            kwargs={"row_factory": dict_row, "autocommit": True},
        )
        return cls(pool)

    async def rows(self, text: str, **values: Any) -> Rows:  # noqa: ANN401 - SQL values
        """The rows of a query."""
        async with self.pool.connection() as connection:
            cursor = await connection.execute(text.encode(), values)
            return await cursor.fetchall()

    async def seq(self, projection: str) -> int:
        """How far a projection is."""
        rows = await self.rows("SELECT seq FROM projection WHERE name = %(name)s", name=projection)
        return int(rows[0]["seq"]) if rows else 0

    async def relay(self) -> Rows:
        """How far the copy on Kafka is behind the log; no row where there never was a relay."""
        return await self.rows(
            "SELECT m.seq, h.seq - m.seq AS lag, m.halted, coalesce((extract(epoch FROM now())"
            " - (SELECT j.recorded_at FROM journal j WHERE j.shard = m.shard AND j.seq = m.seq + 1)"
            " / 1e6)::float8, 0) AS lag_seconds"
            " FROM relay_mark m JOIN log_head h USING (shard) WHERE m.shard = 0"
        )

    async def status(self, reader: Principal) -> Rows:
        """Pools with what is held of them at this moment, as far as the reader may see it."""
        return await self.rows(
            'SELECT p.*, coalesce(sum(c.width_milli) FILTER (WHERE c.start <= t.now AND t.now < c."end"'
            " AND c.state IN ('active', 'degraded', 'leaving')), 0)::bigint AS held_milli,"
            ' count(DISTINCT c.reservation_id) FILTER (WHERE c.start <= t.now AND t.now < c."end")'
            " AS running"
            " FROM pool p CROSS JOIN (SELECT (extract(epoch FROM now()) * 1e6)::bigint AS now) t"
            ' LEFT JOIN calendar c ON c.pool_id = p.pool_id AND c."end" > t.now'
            " AND (%(all)s OR c.tenant_id = %(tenant)s)"
            " GROUP BY p.pool_id, t.now ORDER BY p.pool_id",
            **_reach(reader),
        )

    async def nodes(self) -> Rows:
        """All nodes."""
        return await self.rows("SELECT * FROM node ORDER BY node_id LIMIT 100000")

    async def node_health(self, reader: Principal) -> Rows:
        """The health of nodes, to a tenant of those that it holds units of at this moment."""
        return await self.rows(
            "SELECT node_id, pool_id, state, failed_slots, cause, since FROM node WHERE %(all)s OR"
            " node_id IN (SELECT c.node_id FROM calendar c,"
            " (SELECT (extract(epoch FROM now()) * 1e6)::bigint AS now) AS t"
            ' WHERE c.tenant_id = %(tenant)s AND c.start <= t.now AND t.now < c."end")'
            " ORDER BY node_id LIMIT 100000",
            **_reach(reader),
        )

    async def reservations(self, reader: Principal, state: str = "", limit: int = 100) -> Rows:
        """The newest reservations that a reader may see."""
        return await self.rows(
            "SELECT * FROM reservation WHERE (%(all)s OR tenant_id = %(tenant)s)"
            " AND (%(state)s = '' OR state = %(state)s) ORDER BY seq DESC LIMIT %(limit)s",
            **_reach(reader),
            state=state,
            limit=min(limit, ROWS_MAX),
        )

    async def reservation(self, reader: Principal, reservation_id: str) -> dict[str, Any] | None:
        """One reservation, if the reader may see it."""
        rows = await self.rows(
            "SELECT * FROM reservation WHERE reservation_id = %(id)s"
            " AND (%(all)s OR tenant_id = %(tenant)s)",
            **_reach(reader),
            id=reservation_id,
        )
        return rows[0] if rows else None

    async def own_reservations(self, reader: Principal, ids: list[str]) -> set[str]:
        """Those of some reservations that are the reader's tenant's."""
        rows = await self.rows(
            "SELECT reservation_id FROM reservation WHERE reservation_id = ANY(%(ids)s)"
            " AND tenant_id = %(tenant)s",
            ids=ids,
            tenant=reader.tenant_id or "",
        )
        return {row["reservation_id"] for row in rows}

    async def units(self, reservation_id: str) -> Rows:
        """The rows of the calendar of one reservation."""
        return await self.rows(
            "SELECT * FROM calendar WHERE reservation_id = %(id)s"
            " ORDER BY start, node_id, first_milli",
            id=reservation_id,
        )

    async def calendar(self, reader: Principal, start: int, end: int) -> Rows:
        """What is held in a span, as far as the reader may see it."""
        return await self.rows(
            'SELECT * FROM calendar WHERE start < %(end)s AND "end" > %(start)s'
            " AND (%(all)s OR tenant_id = %(tenant)s)"
            " ORDER BY node_id, first_milli, start LIMIT 20000",
            **_reach(reader),
            start=start,
            end=end,
        )

    async def feed(
        self, reader: Principal, start: int, end: int, tenant_id: str, limit: int
    ) -> Rows:
        """Reservations in a span that came to something, or still may, as far as a reader may see them."""
        return await self.rows(
            _FEED + ' WHERE r.start < %(end)s AND r."end" > %(start)s'
            " AND r.state NOT IN ('queued', 'refused', 'lapsed', 'cancelled', 'expired')"
            " AND (%(all)s OR r.tenant_id = %(tenant)s)"
            " AND (%(of)s = '' OR r.tenant_id = %(of)s)"
            " ORDER BY r.start, r.reservation_id LIMIT %(limit)s",
            **_reach(reader),
            start=start,
            end=end,
            of=tenant_id,
            limit=limit,
        )

    async def feed_of(self, reader: Principal, reservation_id: str) -> Rows:
        """One reservation in any state, as the feed has it, if the reader may see it."""
        return await self.rows(
            _FEED + " WHERE r.reservation_id = %(id)s AND (%(all)s OR r.tenant_id = %(tenant)s)",
            **_reach(reader),
            id=reservation_id,
        )

    async def quota(self, reader: Principal) -> Rows:
        """Grants that a reader may see, each with what its tenant holds of the pool now, by class."""
        return await self.rows(
            "SELECT g.*, coalesce(h.committed, 0)::bigint AS committed_milli,"
            " coalesce(h.borrowed, 0)::bigint AS borrowed_milli,"
            " coalesce(h.overflow, 0)::bigint AS overflow_milli"
            " FROM quota_grant g LEFT JOIN (SELECT tenant_id, pool_id,"
            " sum(width_milli) FILTER (WHERE klass = 'guaranteed') AS committed,"
            " sum(width_milli) FILTER (WHERE klass = 'borrowed') AS borrowed,"
            " sum(width_milli) FILTER (WHERE klass = 'overflow') AS overflow"
            " FROM calendar, (SELECT (extract(epoch FROM now()) * 1e6)::bigint AS now) AS t"
            ' WHERE start <= t.now AND t.now < "end" GROUP BY tenant_id, pool_id) AS h'
            " USING (tenant_id, pool_id) WHERE %(all)s OR g.tenant_id = %(tenant)s"
            " ORDER BY g.tenant_id, g.pool_id, g.start",
            **_reach(reader),
        )

    async def usage(self, reader: Principal, start: int, end: int) -> Rows:
        """Usage by pool, tenant and state over a span."""
        return await self.rows(
            "SELECT pool_id, tenant_id, state, sum(gpu_microseconds)::text AS gpu_microseconds"
            " FROM usage WHERE hour >= %(start)s AND hour < %(end)s"
            " AND (%(all)s OR tenant_id = %(tenant)s)"
            " GROUP BY pool_id, tenant_id, state ORDER BY pool_id, tenant_id, state",
            **_reach(reader),
            start=start,
            end=end,
        )

    async def prices(self, reader: Principal) -> Rows:
        """Price books that hold for a reader: those for everybody, and those that name its tenant."""
        return await self.rows(
            "SELECT * FROM price_book WHERE %(all)s OR tenant_ids::jsonb = '[]'::jsonb"
            " OR tenant_ids::jsonb ? %(tenant)s ORDER BY book_id, version",
            **_reach(reader),
        )

    async def periods(self, reader: Principal) -> Rows:
        """Periods that are closing or closed, as far as a reader may see them."""
        return await self.rows(
            "SELECT * FROM billing_period WHERE %(all)s OR tenant_id = %(tenant)s"
            " ORDER BY tenant_id, start",
            **_reach(reader),
        )

    async def pool_hours(self, start: int, end: int) -> Rows:
        """Closed pool-hours over a span: each state's sum, and the position it was read up to."""
        return await self.rows(
            'SELECT pool_id, hour AS "start", state, gpu_microseconds::text AS gpu_microseconds,'
            " cutoff_seq, seq FROM pool_hour WHERE hour >= %(start)s AND hour < %(end)s"
            " ORDER BY pool_id, hour, state",
            start=start,
            end=end,
        )

    async def is_anothers(self, reader: Principal, reservation_id: str) -> bool:
        """Whether there is such a reservation, and it is not the reader's to see."""
        sql = (
            "SELECT 1 FROM reservation WHERE reservation_id = %(id)s"
            " AND NOT (%(all)s OR tenant_id = %(tenant)s)"
        )
        return bool(await self.rows(sql, id=reservation_id, **_reach(reader)))

    async def request(self, command_id: str) -> dict[str, Any] | None:
        """Why a command came to nothing."""
        rows = await self.rows("SELECT * FROM request WHERE command_id = %(id)s", id=command_id)
        return rows[0] if rows else None

    async def events(self, after: int, limit: int) -> Rows:
        """Events of the journal behind a position, as they are stored."""
        return await self.rows(
            "SELECT seq, type, stream, stream_version, recorded_at, envelope, body FROM journal"
            " WHERE shard = 0 AND seq > %(after)s ORDER BY seq LIMIT %(limit)s",
            after=after,
            limit=min(limit, ROWS_MAX),
        )

    async def stream(self, stream: str) -> Rows:
        """The events of one stream."""
        return await self.rows(
            "SELECT seq, type, stream, stream_version, recorded_at, envelope, body FROM journal"
            " WHERE shard = 0 AND stream = %(stream)s ORDER BY stream_version LIMIT 1000",
            stream=stream,
        )

    async def unit_changes(self, reservation_ids: list[str]) -> Rows:
        """The newest events by which reservations came to other units, oldest first."""
        rows = await self.rows(
            "SELECT seq, envelope, body FROM journal WHERE shard = 0 AND stream = ANY(%(streams)s)"
            " AND type IN ('UnitsReassigned.v1', 'UnitsReleased.v1')"
            " ORDER BY seq DESC LIMIT %(limit)s",
            streams=[f"reservation/{name}" for name in reservation_ids],
            limit=ROWS_MAX,
        )
        return rows[::-1]


def _reach(reader: Principal) -> dict[str, Any]:
    """Tenants see their own rows; the other roles that may read see all."""
    return {"all": reader.role is not Role.TENANT, "tenant": reader.tenant_id or ""}


def instants_as_text(rows: Rows) -> Rows:
    """Rows with their instants as RFC 3339 text."""
    return [
        {
            name: instant_text(int(value)) if name in _INSTANTS and value else value
            for name, value in row.items()
        }
        for row in rows
    ]

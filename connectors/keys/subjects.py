"""The subjects beside the log: their keys, their names, and how both are forgotten."""

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool

from connectors.keys.sealing import new_key, seal, unseal
from domain.ids import PrincipalId
from domain.principal import Entry
from domain.sealed import Sealed

_HEAD = "coalesce((SELECT max(seq) FROM log_head WHERE shard = 0), 0)"


@dataclass(frozen=True, slots=True)
class Subjects:
    """Keys and names in PostgreSQL, over a pool of connections."""

    pool: AsyncConnectionPool[psycopg.AsyncConnection[dict[str, Any]]]

    async def seal(self, subject_id: PrincipalId, text: str) -> Sealed:
        """Text under its subject's key, which is made when there is none."""
        async with self.pool.connection() as connection:
            await connection.execute(
                f"INSERT INTO subject_key (subject_id, key, at_seq) VALUES (%s, %s, {_HEAD})"  # noqa: S608 - no word comes from outside
                " ON CONFLICT DO NOTHING",
                (subject_id, new_key()),
            )
        key = await self._key(subject_id)
        assert key is not None, "it was made a moment ago"
        return seal(key, subject_id, text)

    async def unseal(self, sealed: Sealed) -> str | None:
        """The text; None when its subject was erased since."""
        key = await self._key(sealed.subject_id)
        return None if key is None else unseal(key, sealed)

    async def _key(self, subject_id: PrincipalId) -> bytes | None:
        async with self.pool.connection() as connection:
            query = "SELECT key FROM subject_key WHERE subject_id = %s"
            row = await (await connection.execute(query, (subject_id,))).fetchone()
        return None if row is None else bytes(row["key"])

    async def entry(self, subject_id: PrincipalId) -> Entry | None:
        """Who a subject is, as far as the directory knows."""
        async with self.pool.connection() as connection:
            query = "SELECT name, email FROM directory WHERE subject_id = %s"
            row = await (await connection.execute(query, (subject_id,))).fetchone()
        return None if row is None else Entry(subject_id, row["name"], row["email"])

    async def describe(self, entry: Entry) -> None:
        """Write who a subject is, in place of what was written before."""
        async with self.pool.connection() as connection:
            await connection.execute(
                "INSERT INTO directory (subject_id, name, email, at_seq)"  # noqa: S608 - as above
                f" VALUES (%s, %s, %s, {_HEAD})"
                " ON CONFLICT (subject_id) DO UPDATE SET name = excluded.name,"
                " email = excluded.email, at_seq = excluded.at_seq",
                (entry.subject_id, entry.name, entry.email),
            )


def forget(connection: psycopg.Connection[Any], subject_id: PrincipalId, seq: int) -> None:
    """Shred the key and drop the entry that a subject had at a position of the log; later ones stay.

    Doing it again does nothing, so a reader of the log may meet the same fact twice.
    """
    with connection.transaction():
        for table in ("subject_key", "directory"):
            connection.execute(
                f"DELETE FROM {table} WHERE subject_id = %s AND at_seq < %s".encode(),  # noqa: S608 - as above
                (subject_id, seq),
            )

"""Numbered SQL files, applied once each, with their checksums kept."""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import psycopg

from schemas.queries import SQL

LOCK_NUMBER = 0x67_70_75_6C
"""The advisory lock under which one process at a time migrates."""


class MigrationRefused(Exception):
    """The database was made by other files than these."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file."""

    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """The SHA-256 of its text."""
        return sha256(self.text.encode()).hexdigest()


def migrations(folder: Path = SQL / "migrations") -> list[Migration]:
    """The files of this release, in order."""
    return [
        Migration(int(path.stem.split("_", 1)[0]), path.stem, path.read_text())
        for path in sorted(folder.glob("*.sql"))
    ]


def migrate(dsn: str, folder: Path = SQL / "migrations") -> list[str]:
    """Bring a database up to this release; the names of the files that were applied.

    Safe to run twice and from two processes. Raises `MigrationRefused` when an applied file
    was altered, or when the database is newer than this release.
    """
    known = migrations(folder)
    with psycopg.connect(dsn) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK_NUMBER,))
        connection.execute(
            "CREATE TABLE IF NOT EXISTS migration (number integer PRIMARY KEY, name text NOT NULL,"
            " checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
        )
        rows = connection.execute("SELECT number, name, checksum FROM migration").fetchall()
        applied = {number: (name, checksum) for number, name, checksum in rows}
        _must_agree(known, applied)
        fresh = [migration for migration in known if migration.number not in applied]
        for migration in fresh:
            connection.execute(migration.text)
            connection.execute(
                "INSERT INTO migration (number, name, checksum) VALUES (%s, %s, %s)",
                (migration.number, migration.name, migration.checksum),
            )
    return [migration.name for migration in fresh]


def _must_agree(known: list[Migration], applied: dict[int, tuple[str, str]]) -> None:
    by_number = {migration.number: migration for migration in known}
    for number, (name, checksum) in sorted(applied.items()):
        migration = by_number.get(number)
        if migration is None:
            raise MigrationRefused(
                f"the database has migration {name}, which this release does not know: "
                "it was made by a newer release"
            )
        if migration.checksum != checksum:
            raise MigrationRefused(f"migration {name} was altered after it was applied")

"""Migrations: applied once, by one process, and never over a database that others made."""

import secrets
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from shutil import copytree

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from connectors.postgres.migrate import MigrationRefused, migrate, migrations
from schemas.queries import SQL


@pytest.fixture
def empty_dsn(postgres_server: str) -> Iterator[str]:
    """A database with nothing in it."""
    name = f"empty_{secrets.token_hex(6)}"
    admin = make_conninfo(postgres_server, dbname="postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
        yield make_conninfo(postgres_server, dbname=name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The migrations of this release, to be tampered with."""
    return Path(copytree(SQL / "migrations", tmp_path / "migrations"))


def test_migrating_twice_applies_everything_once(empty_dsn: str) -> None:
    assert migrate(empty_dsn) == [migration.name for migration in migrations()]
    assert migrate(empty_dsn) == []


def test_two_processes_migrate_at_once_and_one_of_them_does_it(empty_dsn: str) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        applied = list(pool.map(migrate, [empty_dsn] * 2))
    assert sorted(applied) == [[], [migration.name for migration in migrations()]]


def test_a_migration_that_was_altered_is_refused_by_name(empty_dsn: str, folder: Path) -> None:
    migrate(empty_dsn, folder)
    first = folder / f"{migrations()[0].name}.sql"
    first.write_text(first.read_text() + "\n-- altered\n")
    with pytest.raises(MigrationRefused, match=migrations()[0].name):
        migrate(empty_dsn, folder)


def test_a_database_of_a_newer_release_is_refused(empty_dsn: str, folder: Path) -> None:
    (folder / "9999_later.sql").write_text("CREATE TABLE later (shard integer PRIMARY KEY);")
    migrate(empty_dsn, folder)
    with pytest.raises(MigrationRefused, match="newer release"):
        migrate(empty_dsn)


def test_a_migration_that_fails_leaves_nothing_behind(empty_dsn: str, folder: Path) -> None:
    (folder / "9999_broken.sql").write_text("CREATE TABLE half (x integer); SELECT 1 / 0;")
    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate(empty_dsn, folder)
    with psycopg.connect(empty_dsn) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        ).fetchone()
    assert row == (0,)


def test_the_shard_leads_every_key_of_the_journals_tables(postgres_dsn: str) -> None:
    sql = """
        SELECT c.relname, a.attname FROM pg_index i
        JOIN pg_class c ON c.oid = i.indrelid
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
        WHERE (i.indisprimary OR i.indisunique) AND c.relname = ANY (%s)
    """
    tables = ["journal", "log_head", "writer_lease", "claim", "ingress_offset", "tile", "snapshot"]
    with psycopg.connect(postgres_dsn) as connection:
        rows = connection.execute(sql, (tables,)).fetchall()
    assert {table for table, _ in rows} == set(tables)
    assert {column for _, column in rows} == {"shard"}

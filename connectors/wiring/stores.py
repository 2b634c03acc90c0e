"""The stores of a service: its database, its broker, its read models."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from connectors.embedded.folder import DataFolder
from connectors.embedded.server import EmbeddedPostgres
from connectors.kafka.broker import LocalBroker
from connectors.postgres.migrate import migrate
from connectors.postgres.rebuilding import Rebuilt, Tell
from connectors.postgres.rebuilding import rebuild as rebuild_projection
from projections.catalogue import all_projections
from projections.projection import Projection
from schemas.registry import registry


@contextmanager
def scratch(folder: Path, password: str) -> Iterator[str]:
    """A PostgreSQL for a moment, migrated; its DSN."""
    with EmbeddedPostgres(folder, password) as server:
        migrate(server.dsn)
        yield server.dsn


def embedded(folder: DataFolder, tell: Callable[[str], None]) -> EmbeddedPostgres:
    """The PostgreSQL of a data folder."""
    return EmbeddedPostgres(folder.path, folder.secret("postgres").hex(), tell=tell)


def local_broker(folder: DataFolder, tell: Callable[[str], None]) -> LocalBroker:
    """The Kafka broker of a data folder."""
    return LocalBroker(folder.path / "kafka", tell=tell)


def prepare(dsn: str) -> list[str]:
    """Bring a database up to this release."""
    return migrate(dsn)


def projection_named(name: str) -> Projection | None:
    """A fresh projection by its name."""
    return next((each for each in all_projections() if each.name == name), None)


def rebuild(dsn: str, projection: Projection, tell: Tell) -> Rebuilt:
    """A read model anew, its old rows serving meanwhile. Raises `JournalUnavailable`."""
    return rebuild_projection(dsn, registry(), projection, tell)

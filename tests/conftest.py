"""Real parts for tests: each from the settings, else started by ourselves."""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import structlog

from connectors.embedded.server import EmbeddedPostgres, PostgresRefused
from connectors.kafka import topics
from connectors.kafka.broker import BrokerRefused, LocalBroker
from connectors.kafka.settings import KafkaSettings
from connectors.postgres.migrate import migrate

IN_CI = bool(os.environ.get("CI"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--simulation-seeds", type=int, default=40, help="how many seeds the simulation runs"
    )


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """A verb that was run in this process leaves its way of logging, to a stream that is closed, behind."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The DSN of a server on which databases can be made; its own database is their template."""
    given = os.environ.get("GPULEDGER_TEST_DSN")
    if given:
        migrate(given)
        yield given
        return
    folder = tmp_path_factory.mktemp("postgres")
    try:
        server = EmbeddedPostgres(folder, secrets.token_hex(8), settings={"fsync": "off"})
        server.start()
    except PostgresRefused as error:
        if IN_CI:
            raise
        pytest.skip(f"no PostgreSQL: {error}")
    migrate(server.dsn)
    yield server.dsn
    server.stop()


@pytest.fixture
def postgres_dsn(postgres_server: str) -> Iterator[str]:
    """A fresh, migrated database; a copy of a migrated one."""
    parts = psycopg.conninfo.conninfo_to_dict(postgres_server)
    template = parts["dbname"]
    name = f"test_{secrets.token_hex(6)}"
    admin = psycopg.conninfo.make_conninfo(postgres_server, dbname="postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE {name} TEMPLATE "{template}"'.encode())
        yield psycopg.conninfo.make_conninfo(postgres_server, dbname=name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture(scope="session")
def kafka_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a real broker answers: from the settings, else our own, else in a container."""
    given = os.environ.get("GPULEDGER_TEST_KAFKA")
    if given:
        yield given
        return
    broker = LocalBroker(tmp_path_factory.mktemp("kafka"))
    try:
        broker.start()
        broker.wait()
    except BrokerRefused as error:
        container = None if IN_CI else kafka_container()
        if container is None:
            if IN_CI:
                raise
            pytest.skip(f"no Kafka: {error}")
        with container:
            yield container.get_bootstrap_server()
        return
    yield broker.bootstrap_servers
    broker.stop()


def kafka_container() -> Any:
    """A broker in a container, not started; None where no Docker engine answers."""
    from docker.errors import DockerException
    from testcontainers.community.kafka import KafkaContainer
    from testcontainers.core.docker_client import DockerClient

    try:
        DockerClient().client.ping()
    except (DockerException, OSError):
        return None
    one = {
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    }
    return KafkaContainer().with_kraft().with_envs(**one)


@pytest.fixture
def kafka_settings(kafka_bootstrap: str) -> KafkaSettings:
    """A prefix of its own on the broker; its topics are not made yet."""
    return KafkaSettings((kafka_bootstrap,), prefix=f"test{secrets.token_hex(6)}.")


@pytest.fixture
def settings(kafka_settings: KafkaSettings) -> KafkaSettings:
    """The same, with its topics."""
    topics.create(kafka_settings)
    return kafka_settings


@pytest.fixture
def another_dsn(postgres_server: str) -> Iterator[str]:
    """An empty database, not even migrated."""
    name = f"another_{secrets.token_hex(6)}"
    admin = psycopg.conninfo.make_conninfo(postgres_server, dbname="postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield psycopg.conninfo.make_conninfo(postgres_server, dbname=name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture(scope="session")
def traces() -> Path:
    """Where the real traces lie; what needs them is skipped where they are not."""
    root = Path(__file__).parent.parent
    folder = Path(os.environ.get("GPULEDGER_DATA", root.parent / "shared" / "data"))
    if not (folder / "openb_2023").exists():
        pytest.skip(f"no traces in {folder}; set GPULEDGER_DATA")
    return folder

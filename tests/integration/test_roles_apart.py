"""The roles one by one, as the compose file starts them, over a PostgreSQL of somebody else."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from connectors.kafka.settings import KafkaSettings
from connectors.running.files import Service, read_service
from connectors.running.roles import KAFKA_ROLES, ROLES
from tests.integration.test_embedded_postgres import gone_within, lives
from tests.kafka_parts import environment, in_log, on_topic

ROOT = Path(__file__).parents[2]
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
READY_SECONDS_MAX = 90


def _free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return str(probe.getsockname()[1])


PORT = _free_port()
"""One port for all, so that each start shows that the one before has left it."""


def commands_of(word: str) -> list[list[str]]:
    """What the services of the compose file run whose command begins with a word."""
    return [s["command"] for s in SERVICES.values() if s.get("command", [""])[0] == word]


def gpuledger(folder: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "connectors.cli", "--data", str(folder), *words]


def init(folder: Path, dsn: str) -> Service:
    words = [dsn if word.startswith("host=") else word for word in SERVICES["init"]["command"]]
    command = gpuledger(folder, *words, "--url", f"http://127.0.0.1:{PORT}")
    subprocess.run(command, check=True, capture_output=True)
    service = read_service(folder)
    assert service is not None
    return service


def await_health(service: Service) -> None:
    until = time.monotonic() + READY_SECONDS_MAX
    while True:
        try:
            answer = httpx.get(f"{service.url}/v1/health").json()
        except httpx.HTTPError as error:
            answer = {"error": str(error)}
        if answer.get("status") == "ok":
            return
        assert time.monotonic() < until, answer
        time.sleep(0.1)


@pytest.fixture
def apart(tmp_path: Path, postgres_dsn: str, kafka_settings: KafkaSettings) -> Iterator[Service]:
    """The service, each role a process that knows nothing but its command, folder and broker."""
    service = init(tmp_path, postgres_dsn)
    broker = os.environ | environment(kafka_settings)
    for words in commands_of("topics"):
        subprocess.run(
            gpuledger(tmp_path, *words), env=broker, check=True, stdout=subprocess.DEVNULL
        )
    commands = commands_of("serve")
    assert {words[1] for words in commands} == {*ROLES, *KAFKA_ROLES}
    roles = [subprocess.Popen(gpuledger(tmp_path, *words), env=broker) for words in commands]
    await_health(service)
    yield service
    for role in roles:
        role.terminate()
    ended = {role.wait(30) for role in roles}
    assert ended <= {0, -signal.SIGTERM}, "uvicorn ends by the signal that told it to stop"


def test_a_fleet_is_booked_its_hardware_applied_and_its_events_on_kafka(
    apart: Service, kafka_settings: KafkaSettings
) -> None:
    headers = {"Authorization": f"Bearer {apart.tokens['operator']}"}
    with httpx.Client(base_url=apart.url, headers=headers) as operator:

        def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
            answer = operator.post(path, json=body, headers={"Idempotency-Key": path})
            assert answer.is_success, answer.text
            content: dict[str, Any] = answer.json()
            return content

        post("/v1/pools", {"pool_id": "p", "site": "s"})
        node = {"pool_id": "p", "node_id": "n", "model": "H100", "gpus": 8}
        post("/v1/nodes", node | {"gpu_memory_mib": 81_920, "levels": []})
        post("/v1/tenants", {"tenant_id": "t"})
        post("/v1/quota", {"tenant_id": "t", "pool_id": "p", "nominal_milli": 8_000})
        ask = {"tenant_id": "t", "pool_id": "p", "size": {"gpus": 8}, "duration_seconds": 3600}
        booked = post("/v1/reservations", ask | {"start": None})
        until = time.monotonic() + 30
        while True:
            found = operator.get(f"/v1/reservations/{booked['id']}").json()
            if found.get("state") == "active":
                break
            assert time.monotonic() < until, found
            time.sleep(0.1)
    seqs = [event.seq for event in in_log(apart.dsn)]
    while (sent := [event.seq for event, _ in on_topic(kafka_settings)])[: len(seqs)] != seqs:
        assert time.monotonic() < until, sent


def test_initialising_again_keeps_tokens_and_secrets(tmp_path: Path, postgres_dsn: str) -> None:
    first = init(tmp_path, postgres_dsn)
    secret = (tmp_path / "fingerprint.secret").read_text()
    assert init(tmp_path, postgres_dsn).tokens == first.tokens
    assert (tmp_path / "fingerprint.secret").read_text() == secret


def test_a_role_without_a_description_says_what_makes_one(tmp_path: Path) -> None:
    done = subprocess.run(
        gpuledger(tmp_path, "serve", "follower"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "gpuledger init" in done.stderr


def test_a_killed_dev_takes_its_roles_along_and_the_next_one_has_its_port(tmp_path: Path) -> None:
    for _ in range(2):
        dev = subprocess.Popen(
            gpuledger(tmp_path, "dev", "--port", PORT), stdout=subprocess.PIPE, text=True
        )
        assert dev.stdout is not None
        assert dev.stdout.readline() == f"http://127.0.0.1:{PORT}\n"
        database, *roles = sorted(_children(dev.pid), key=_is_role)
        assert not _is_role(database)
        assert len(roles) == len(ROLES)
        dev.kill()
        dev.wait()
        dev.stdout.close()
        assert all(gone_within(pid, 20) for pid in roles)
    assert lives(database), "the database alone lives on, for the next start to stop"
    os.kill(database, signal.SIGINT)


def test_a_restart_forgets_no_key_and_grants_nothing_twice(tmp_path: Path) -> None:
    outcomes, heads = [], []
    for _ in range(2):
        dev = subprocess.Popen(
            gpuledger(tmp_path, "dev", "--port", PORT), stdout=subprocess.PIPE, text=True
        )
        assert dev.stdout is not None
        assert dev.stdout.readline() == f"http://127.0.0.1:{PORT}\n"
        service = read_service(tmp_path)
        assert service is not None
        with httpx.Client(base_url=service.url) as client:
            headers = {"Authorization": f"Bearer {service.tokens['operator']}"}
            answer = client.post(
                "/v1/tenants",
                json={"tenant_id": "another"},
                headers=headers | {"Idempotency-Key": "the same"},
            )
            outcomes.append(answer.json())
            heads.append(client.get("/v1/health").json()["head"])
        dev.send_signal(signal.SIGINT)
        assert dev.wait(60) == 0
        dev.stdout.close()
    assert outcomes[1] == outcomes[0] | {"repeat": True}
    lease = 1
    assert heads[1] == heads[0] + lease, "no fleet joined twice, no quota granted twice"


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_role(pid: int) -> bool:
    return b"\0serve\0" in Path(f"/proc/{pid}/cmdline").read_bytes()

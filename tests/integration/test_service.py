"""The service as its owner runs it: found, killed, started twice, and without its database."""

import re
import subprocess
import sys
import uuid
from pathlib import Path

import httpx

from tests.integration.conftest import Running, eventually, kill, start, stop

README = Path(__file__).parent.parent.parent / "README.md"


def _commands() -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", README.read_text(), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line.removeprefix("./gpuledger ") for line in lines if line.startswith("./gpuledger ")]


def test_every_command_of_the_readme_works(running: Running) -> None:
    refused = {"reserve --nodes 16 --for 2h --tenant team-b"}
    for line in _commands():
        done = running.cli(*line.split())
        expected = 1 if line in refused else 0
        assert done.returncode == expected, (line, done.stdout, done.stderr)


def test_json_is_all_that_json_prints(running: Running) -> None:
    import json

    for words in (("status",), ("node", "list"), ("quota", "list"), ("whoami",), ("doctor",)):
        json.loads(running.cli("--json", *words).stdout)


def test_the_exit_status_says_how_it_ended(running: Running) -> None:
    assert running.cli("status").returncode == 0
    assert (
        running.cli("reserve", "--gpus", "0", "--nodes", "999", "--tenant", "team-a").returncode
        == 1
    )
    assert running.cli("reserve", "--for", "soon").returncode == 2
    assert running.cli("--server", "http://127.0.0.1:9", "status").returncode == 3


def test_a_second_service_on_the_same_folder_or_port_is_refused(running: Running) -> None:
    second = running.cli("dev", "--port", "0")
    assert second.returncode == 1
    assert "is open in process" in second.stderr
    port = running.service.url.rsplit(":", 1)[1]
    command = [sys.executable, "-m", "connectors.cli", "--data", f"{running.folder}-2", "dev"]
    busy = subprocess.run([*command, "--port", port], capture_output=True, text=True, check=False)
    assert busy.returncode == 1
    assert f"port {port} is in use" in busy.stderr


def _books(client: httpx.Client, body: dict[str, object]) -> bool:
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    return client.post("/v1/reservations", json=body, headers=headers).status_code == 201


def test_nothing_acknowledged_is_lost_when_the_writer_is_killed(running: Running) -> None:
    body = {"tenant_id": "team-a", "pool_id": "main", "size": {"gpus": 1}, "duration_seconds": 1}
    acknowledged: dict[str, str] = {}
    with running.http() as client:
        for round_number in range(3):
            for number in range(40):
                key = f"kill-{round_number}-{number}"
                answer = client.post(
                    "/v1/reservations", json=body, headers={"Idempotency-Key": key}
                )
                if answer.status_code == 201:
                    acknowledged[key] = answer.json()["id"]
                if number == 20:
                    kill(running.pid_of("sequencer"))
                    eventually(lambda: client.get("/v1/health").status_code == 503, 3)
            eventually(lambda: _books(client, body), 60)
        assert acknowledged
        for key, reservation_id in acknowledged.items():
            again = client.post("/v1/reservations", json=body, headers={"Idempotency-Key": key})
            assert again.json()["repeat"], key
            assert again.json()["id"] == reservation_id


def test_without_its_database_it_says_so_and_comes_back(tmp_path: Path) -> None:
    service = start(tmp_path / "data")
    try:
        with service.http() as client:
            pid_file = service.folder / "postgres" / "postmaster.pid"
            kill(int(pid_file.read_text().split("\n", 1)[0]))
            body = {
                "tenant_id": "team-a",
                "pool_id": "main",
                "size": {"gpus": 1},
                "duration_seconds": 9,
            }
            answer = client.post("/v1/reservations", json=body, headers={"Idempotency-Key": "lost"})
            assert answer.status_code == 503
            assert answer.headers["retry-after"] == "1"
            assert client.get("/v1/status").status_code == 503
            metrics = client.get("/metrics")
            assert metrics.status_code == 200
            assert "gpuledger_database_up 0.0" in metrics.text
    finally:
        stop(service)

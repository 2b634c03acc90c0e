"""The whole service with a real broker, from outside, and through kills."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from kafka import KafkaProducer

from connectors.embedded.server import EmbeddedPostgres
from connectors.kafka import topics
from connectors.kafka.records import wire
from connectors.kafka.settings import KafkaSettings
from connectors.running.files import read_service
from domain import commands as c
from domain.ids import TenantId
from schemas.registry import AVRO, registry
from tests.integration.conftest import Running, eventually, kill, stop
from tests.kafka_parts import gpuledger, in_log, on_topic, records_on

ROOT = Path(__file__).parent.parent.parent
KILLS = int(os.environ.get("GPULEDGER_KILLS", "6"))
COMMANDS_PER_KILL = 30


@pytest.fixture
def settings(kafka_bootstrap: str) -> KafkaSettings:
    """The names that the page uses; what an earlier test left of them is taken away."""
    found = KafkaSettings((kafka_bootstrap,))
    with topics.admin(found) as client:
        there = [name for name in client.list_topics() if name.startswith(found.prefix)]
        if there:
            client.delete_topics(there)
    return found


def started(folder: Path, settings: KafkaSettings, *words: str) -> Running:
    """A service of its own, with the broker of the tests."""
    command = [sys.executable, "-m", "connectors.cli", "--data", str(folder), "dev", "--port", "0"]
    environment = os.environ | {"KAFKA_BOOTSTRAP_SERVERS": settings.bootstrap_servers[0]}
    process = subprocess.Popen(
        [*command, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"http://127.0.0.1:")
    service = read_service(folder)
    assert service is not None
    return Running(folder, process, service)


def notes_on(settings: KafkaSettings) -> list[str]:
    """Every checkpoint on its topic."""
    return [record.value.decode() for record in records_on(settings, topics.CHECKPOINTS)]


def test_a_signed_checkpoint_of_what_is_on_kafka_is_beside_it(
    running: Running, settings: KafkaSettings, tmp_path: Path
) -> None:
    eventually(lambda: notes_on(settings))
    file = tmp_path / "kept.note"
    file.write_text(notes_on(settings)[-1])
    key = running.cli("audit", "key").stdout.strip()
    words = ("audit", "verify", "--from", "kafka", "--checkpoint", str(file), "--key", key)
    done = gpuledger(settings, "--data", str(running.folder), *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "events is yours" in done.stdout


@pytest.fixture
def running(tmp_path: Path, settings: KafkaSettings) -> Iterator[Running]:
    found = started(tmp_path / "data", settings)
    yield found
    stop(found)


def test_the_script_of_the_page_books_and_reads_from_outside(
    running: Running, settings: KafkaSettings, tmp_path: Path
) -> None:
    (script,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/kafka.md").read_text(), re.DOTALL)
    path = tmp_path / "outside.py"
    path.write_text(script)
    token = running.service.tokens["operator"]
    done = subprocess.run(
        [sys.executable, str(path), settings.bootstrap_servers[0], token, str(AVRO)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    outcome, event = map(json.loads, done.stdout.splitlines())
    assert outcome["outcome"] == "accepted"
    assert event[0] == "TenantTagged.v1"
    assert event[1]["tags"] == {"booked": "from outside"}


def publish(settings: KafkaSettings, token: str, numbers: range) -> None:
    producer = KafkaProducer(**settings.client, acks="all")
    for number in numbers:
        contract, body = registry().encode(c.TagTenant(TenantId("team-a"), {"n": str(number)}))
        headers = [("lg_key", f"kill-{number}".encode()), ("lg_token", token.encode())]
        topic = settings.prefix + topics.COMMANDS
        producer.send(topic, wire(contract.id, body), headers=headers, partition=number % 4)
    producer.flush()
    producer.close()


def test_after_any_kill_the_topic_is_the_log_and_no_command_is_lost_or_done_twice(
    running: Running, settings: KafkaSettings
) -> None:
    dice = random.Random(7)
    token = running.service.tokens["service"]
    sent = 0
    for _ in range(KILLS):
        publish(settings, token, range(sent, sent + COMMANDS_PER_KILL))
        sent += COMMANDS_PER_KILL
        time.sleep(dice.random() * 0.8)
        role = dice.choice(("relay", "ingress", "sequencer", "relay"))
        pid = running.pid_of(role)
        kill(pid)
        eventually(partial(_is_another, running, role, pid), 60)
    dsn = running.service.dsn

    def tagged() -> int:
        return sum(e.type.startswith("TenantTagged") for e in in_log(dsn))

    eventually(lambda: tagged() == sent, 90)
    log = in_log(dsn)

    def is_equal() -> bool:
        found = [event for event, _ in on_topic(settings)]
        return found[: len(log)] == log

    eventually(is_equal, 60)
    values = [
        registry().decode(e.type, e.body).tags["n"] for e in log if e.type.startswith("TenantTag")
    ]
    assert sorted(values, key=int) == [str(n) for n in range(sent)]
    for partition in range(4):
        mine = [int(v) for v in values if int(v) % 4 == partition]
        assert mine == sorted(mine), "each partition's commands are in its order"
    verdict = gpuledger(
        settings, "--data", str(running.folder), "audit", "verify", "--from", "kafka", "--json"
    )
    assert json.loads(verdict.stdout)["holds"], verdict.stdout


def _is_another(running: Running, role: str, pid: int) -> bool:
    try:
        return running.pid_of(role) != pid
    except LookupError:
        return False


def test_a_broker_that_is_away_stops_nothing_and_is_caught_up_with(tmp_path: Path) -> None:
    """`dev --kafka` with its own broker, which is stopped with SIGSTOP for a while."""
    folder = tmp_path / "data"
    command = [sys.executable, "-m", "connectors.cli", "--data", str(folder)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KAFKA_")}
    process = subprocess.Popen(
        [*command, "dev", "--port", "0", "--kafka"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"http://127.0.0.1:")
    service = read_service(folder)
    assert service is not None
    running = Running(folder, process, service)
    broker = int((folder / "kafka" / "broker.pid").read_text())
    port = re.search(
        r"PLAINTEXT://127.0.0.1:(\d+)", (folder / "kafka" / "server.properties").read_text()
    )
    assert port is not None
    settings = KafkaSettings((f"127.0.0.1:{port[1]}",))
    try:
        os.kill(broker, signal.SIGSTOP)
        booked = running.cli("reserve", "--gpus", "8", "--for", "1h", "--tenant", "team-a")
        assert booked.returncode == 0, booked.stderr
        time.sleep(3)
        os.kill(broker, signal.SIGCONT)
        log = in_log(service.dsn)
        eventually(lambda: [e for e, _ in on_topic(settings)][: len(log)] == log, 60)
    finally:
        os.kill(broker, signal.SIGCONT)
        stop(running)
    assert not Path(f"/proc/{broker}").exists()


def test_a_database_that_is_cut_off_for_a_while_loses_no_command_and_doubles_none(
    tmp_path: Path, settings: KafkaSettings
) -> None:
    database = EmbeddedPostgres(tmp_path / "postgres", "secret")
    (tmp_path / "postgres").mkdir()
    dsn = database.start()
    running = started(tmp_path / "data", settings, "--dsn", dsn)
    token = running.service.tokens["service"]
    try:
        publish(settings, token, range(40))
        assert database.pid is not None
        os.kill(database.pid, signal.SIGQUIT)  # as `pg_ctl stop -m immediate` does
        publish(settings, token, range(40, 80))
        with running.http() as client:
            answer = client.get("/v1/reservations")
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        time.sleep(2)
        database.start()

        def tagged() -> list[int]:
            events = [e for e in in_log(dsn) if e.type.startswith("TenantTagged")]
            return sorted(int(registry().decode(e.type, e.body).tags["n"]) for e in events)

        eventually(lambda: tagged() == list(range(80)), 90)
        log = in_log(dsn)
        eventually(lambda: [e for e, _ in on_topic(settings)][: len(log)] == log, 60)
    finally:
        stop(running)
        database.stop()

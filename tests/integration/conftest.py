"""A whole service in its own processes, for the tests that talk to it from outside."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from connectors.running.files import Service, read_service

START_SECONDS_MAX = 120


@dataclass(slots=True)
class Running:
    """A service and how to speak to it."""

    folder: Path
    process: subprocess.Popen[bytes]
    service: Service

    def http(self, who: str = "operator") -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.service.tokens[who]}"}
        return httpx.Client(base_url=self.service.url, headers=headers, timeout=30)

    def cli(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "connectors.cli", "--data", str(self.folder), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    def pid_of(self, role: str) -> int:
        """The process of a role."""
        words = f"--data\0{self.folder}\0serve\0{role}".encode()
        for process in Path("/proc").iterdir():
            if process.name.isdigit():
                try:
                    line = (process / "cmdline").read_bytes()
                except OSError:
                    continue
                if words in line:
                    return int(process.name)
        raise LookupError(role)


def start(folder: Path) -> Running:
    command = [sys.executable, "-m", "connectors.cli", "--data", str(folder), "dev", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    first = process.stdout.readline().decode()
    assert first.startswith("http://127.0.0.1:"), first
    service = read_service(folder)
    assert service is not None
    return Running(folder, process, service)


def stop(running: Running) -> None:
    running.process.send_signal(signal.SIGINT)
    assert running.process.stdout is not None
    running.process.stdout.read()
    running.process.wait(60)
    running.process.stdout.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One service for a module."""
    found = start(tmp_path_factory.mktemp("service") / "data")
    yield found
    stop(found)


def eventually(what: object, seconds: float = 20.0) -> None:
    """Wait until a function says yes."""
    until = time.monotonic() + seconds
    while not what():  # type: ignore[operator]
        assert time.monotonic() < until, "it never came true"
        time.sleep(0.05)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)

"""The HTTP face: single reservations at 64 connections, and the batch call; same two cores."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import httpx

from benchmarks.figures import SEED, Figure, main
from connectors.running.files import Service, read_service

CONNECTIONS = 64
SECONDS = 10.0
BATCH = 250
BATCHES = 40
HOURS_AHEAD = 8_000


def _body(random: Random) -> dict[str, object]:
    """A GPU for an hour, some time in the next year, on the fleet that `dev` makes."""
    start = datetime.now(UTC) + timedelta(hours=random.randrange(1, HOURS_AHEAD))
    return {
        "tenant_id": random.choice(("team-a", "team-b")),
        "pool_id": "main",
        "size": {"gpus": 1},
        "start": start.isoformat(timespec="seconds"),
        "duration_seconds": 3600,
        "offers_max": 0,
    }


async def _singles(service: Service, random: Random) -> tuple[float, float]:
    """Durable answers per second, and p99 in ms, over raw keep-alive connections."""
    host, port = service.url.removeprefix("http://").split(":")
    taken: list[float] = []
    until = time.perf_counter() + SECONDS

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        count = 0
        while time.perf_counter() < until:
            body = json.dumps(_body(random)).encode()
            count += 1
            head = (
                f"POST /v1/reservations HTTP/1.1\r\nHost: {host}\r\n"
                f"Authorization: Bearer {service.tokens['operator']}\r\n"
                f"Idempotency-Key: {number}-{count}-{until}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            begun = time.perf_counter()
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            taken.append(time.perf_counter() - begun)
            assert answer[9:12] in {b"201", b"409"}, answer
        writer.close()

    begun = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(CONNECTIONS)))
    seconds = time.perf_counter() - begun
    taken.sort()
    return len(taken) / seconds, taken[int(len(taken) * 0.99)] * 1e3


def _batch(service: Service, random: Random) -> float:
    """Commands per second through the batch call."""
    headers = {"Authorization": f"Bearer {service.tokens['operator']}", "Idempotency-Key": "batch"}
    with httpx.Client(base_url=service.url, headers=headers, timeout=60) as client:
        begun = time.perf_counter()
        for batch in range(BATCHES):
            commands = [
                {
                    "command": "RequestReservation",
                    "key": f"b-{batch}-{n}-{begun}",
                    "body": _body(random),
                }
                for n in range(BATCH)
            ]
            answer = client.post("/v1/batch?brief=true", json={"commands": commands})
            assert answer.status_code == 200, answer.text
        seconds = time.perf_counter() - begun
    return BATCHES * BATCH / seconds


def measure() -> Sequence[Figure]:
    """All figures of the HTTP face, and how long a start takes."""
    random = Random(SEED)
    with TemporaryDirectory(prefix="gpuledger-bench-") as folder:
        command = [sys.executable, "-m", "connectors.cli", "--data", folder, "dev", "--port", "0"]
        starts: list[float] = []
        for _ in range(2):
            begun = time.perf_counter()
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            assert process.stdout is not None
            process.stdout.readline()
            starts.append(time.perf_counter() - begun)
            service = read_service(Path(folder))
            assert service is not None
            if len(starts) == 2:
                rate, p99 = asyncio.run(_singles(service, random))
                batch = _batch(service, random)
            process.send_signal(signal.SIGINT)
            process.wait(60)
    return [
        Figure("http.single", rate, "per s", 1_500),
        Figure("http.single-p99", p99, "ms", 100, is_most=True),
        Figure("http.batch", batch, "per s", 8_000),
        Figure("start.first", starts[0], "s", 30, is_most=True),
        Figure("start.warm", starts[1], "s", 6, is_most=True),
    ]


if __name__ == "__main__":
    main(measure, __doc__ or "")

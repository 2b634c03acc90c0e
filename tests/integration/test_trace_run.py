"""A trace through every layer, killed in the middle and run again; anyone can check the export."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from random import Random

from connectors.exports.charges import read_file, write_csv
from tests.billing import lint

JOBS = 1_500


def trace(folder: Path) -> Path:
    random = Random(5)
    file = folder / "jobs.csv"
    with file.open("w") as out:
        out.write("name,tenant,submit_s,duration_s,gpus,gpu_milli,models\n")
        for number in range(JOBS):
            gpus = random.choice((1, 1, 2, 4, 8, 12))
            share = random.choice((250, 600)) if gpus == 1 and random.random() < 0.5 else ""
            length = random.randint(60, 7200)
            out.write(f"j{number},t{number % 3},{number * 40},{length},{gpus},{share},\n")
    return file


def command(folder: Path, *more: str) -> list[str]:
    words = ("trace", "run", "--jobs", str(folder / "jobs.csv"), "--fleet", "6x8")
    return [sys.executable, "-m", "connectors.cli", *words, "--data", str(folder / "data"), *more]


def test_a_run_that_is_killed_goes_on_and_every_check_holds(tmp_path: Path) -> None:
    trace(tmp_path)
    first = subprocess.Popen(command(tmp_path), stderr=subprocess.DEVNULL, start_new_session=True)
    socket_wait = time.monotonic() + 60
    log = tmp_path / "data" / "service.json"
    while not log.exists() and time.monotonic() < socket_wait:
        time.sleep(0.05)
    time.sleep(3.0)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    report, chart = tmp_path / "report.json", tmp_path / "chart.svg"
    done = subprocess.run(
        command(tmp_path, "--report", str(report), "--svg", str(chart)),
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(report.read_text())
    assert told["checks"] == {
        "double_bookings": 0,
        "books_balance": True,
        "replay_equal": True,
        "charges_reconcile": True,
    }
    assert told["charges"]["difference_gpu_microseconds"] == 0
    assert told["charges"]["rows"] > JOBS / 2
    assert told["requests"] == JOBS == told["accepted"] + sum(told["refused"].values())
    amounts = dict(told["gpu_microseconds"])
    assert amounts.pop("capacity") == sum(amounts.values())
    assert chart.read_text().startswith("<svg")
    check_export(tmp_path)
    check_charges(tmp_path, told["charges"]["gpu_microseconds"])


def check_export(folder: Path) -> None:
    """Ten lines of somebody else's: nobody holds what another one holds."""
    out = folder / "assignments.csv"
    words = ("export", "assignments", "--data", str(folder / "data"), "--out", str(out))
    command_line = [sys.executable, "-m", "connectors.cli", *words]
    subprocess.run(command_line, check=True, capture_output=True)
    held: dict[tuple[str, str, int], list[tuple[str, str]]] = {}
    with out.open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        for milli in range(
            int(row["first_milli"]), int(row["first_milli"]) + int(row["width_milli"]), 50
        ):
            place = (row["node_id"], row["gpu_index"], milli)
            held.setdefault(place, []).append((row["start"], row["end"]))
    for spans in held.values():
        spans.sort()
        assert all(one[1] <= two[0] for one, two in pairwise(spans))


def check_charges(folder: Path, charged: int) -> None:
    """The files of a stopped folder pass the linter, and a fresh rating finds no difference."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "connectors.cli", "charges", *words]
        line += ["--data", str(folder / "data"), "--json"]
        return subprocess.run(line, capture_output=True, text=True, check=False)

    hourly, daily = folder / "charges.parquet", folder / "charges.csv"
    assert run("export", "--format", "parquet", "--out", str(hourly)).returncode == 0
    assert run("export", "--grain", "day", "--out", str(daily)).returncode == 0
    rows = list(read_file(hourly))
    lint(rows)
    lint(list(read_file(daily)))
    assert sum(int(row["x_GpuMicroseconds"] or 0) for row in rows) == charged
    page = folder / "statement.html"
    assert run("statement", "t0", "--out", str(page)).returncode == 0
    assert "<svg" in page.read_text()
    done = run("reconcile", "--file", str(hourly))
    assert (done.returncode, json.loads(done.stdout)["count"]) == (0, 0), done.stdout
    wrong = folder / "wrong.csv"
    rows[3]["BilledCost"] = "99"
    write_csv(wrong, rows[1:])
    done = run("reconcile", "--file", str(wrong))
    assert done.returncode == 1
    differences = json.loads(done.stdout)["differences"]
    assert any("BilledCost is 99" in what for what in differences)
    assert any("is missing" in what for what in differences)


def test_a_virtual_folder_is_not_opened_for_the_wall_clock(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "gpuledger.json").write_text('{"format": 1, "clock": "virtual"}')
    words = ("--data", str(tmp_path / "data"), "dev", "--port", "0")
    done = subprocess.run(
        [sys.executable, "-m", "connectors.cli", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "was made for a virtual clock" in done.stderr

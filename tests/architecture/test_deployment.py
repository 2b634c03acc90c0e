"""What is deployed: the wheel's contents, and containers that run our roles as they are."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import compose_spec
import pytest
import yaml
from typer.testing import CliRunner

from connectors.cli.app import app
from connectors.running.roles import KAFKA_ROLES, ROLES

ROOT = Path(__file__).parents[2]
PACKAGES = {"domain", "projections", "solvers", "schemas", "connectors"}
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = {name for name, service in SERVICES.items() if "build" in service}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this tree."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_ships_the_five_packages_whole_and_nothing_else(wheel: Path) -> None:
    here = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    shipped = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {name.split("/")[0] for name in shipped} == PACKAGES
    assert shipped == here
    assert {Path(name).suffix for name in shipped} >= {".py", ".sql", ".avsc", ".html", ".css"}


def test_the_wheel_has_the_command_and_may_not_be_uploaded(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    by_name = {name.split("/")[-1]: name for name in archive.namelist() if ".dist-info/" in name}
    assert (
        "gpuledger = connectors.cli.app:main" in archive.read(by_name["entry_points.txt"]).decode()
    )
    metadata = archive.read(by_name["METADATA"]).decode()
    assert "Classifier: Private :: Do Not Upload" in metadata
    assert "License-Expression: Apache-2.0" in metadata
    assert "LICENSE" in by_name


def test_the_compose_file_keeps_the_compose_specification() -> None:
    compose_spec.PyCompose.from_json(json.dumps(COMPOSE)).validate()


def test_every_role_has_a_container_and_every_container_of_ours_a_role() -> None:
    assert {*ROLES, *KAFKA_ROLES, "init", "topics"} == OURS
    assert {"postgres", "kafka", "prometheus", "grafana"} == SERVICES.keys() - OURS


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_container_runs_a_command_that_there_is(name: str) -> None:
    verb, *words = SERVICES[name]["command"]
    described = CliRunner().invoke(app, [verb, "--help"], env={"COLUMNS": "200"})
    assert described.exit_code == 0
    for word in words:
        if word.startswith("--"):
            assert word in described.output
    if verb == "serve":
        assert words[0] == name


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_port_is_for_this_machine_only(name: str) -> None:
    for port in SERVICES[name].get("ports", ()):
        assert port.startswith("127.0.0.1:")


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_an_image_is_named_with_its_version(name: str) -> None:
    assert re.fullmatch(r"[a-z/]+:v?\d+(\.\d+)*", SERVICES[name]["image"])


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_mounts_and_dependencies_exist(name: str) -> None:
    service = SERVICES[name]
    for other in service.get("depends_on", ()):
        assert other in SERVICES
    for mount in service.get("volumes", ()):
        source = mount.split(":")[0]
        assert (ROOT / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]


def test_prometheus_asks_the_port_that_http_listens_on() -> None:
    asked = yaml.safe_load((ROOT / "deploy" / "prometheus.yml").read_text())
    (target,) = asked["scrape_configs"][0]["static_configs"][0]["targets"]
    name, port = target.split(":")
    assert SERVICES[name]["ports"] == [f"127.0.0.1:{port}:{port}"]


def test_the_image_copies_what_there_is() -> None:
    allowed = {
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    copied: set[str] = set()
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        words = line.split()
        if words[:1] == ["COPY"] and not words[1].startswith("--from"):
            copied |= set(words[1:-1])
    assert copied == allowed
    assert copied >= PACKAGES
    for name in copied:
        assert (ROOT / name).exists()


def test_the_locks_hold_every_dependency_with_its_hash() -> None:
    for lock in ("requirements.lock", "requirements-dev.lock"):
        pinned = re.findall(
            r"^([a-z0-9][^\s=]*)==\S+ \\\n +--hash=sha256:", _text(lock), re.MULTILINE
        )
        named = re.findall(r"^([a-z0-9][^\s=]*)==", _text(lock), re.MULTILINE)
        assert pinned == named
        assert len(pinned) > 40
    assert set(_names("requirements.lock")) <= set(_names("requirements-dev.lock"))


def test_the_make_targets_of_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", _text("Makefile"), re.MULTILINE))
    assert {"run", "test", "setup", "check", "bench", "simulate", "lock", "help"} <= targets
    for target in re.findall(r"^make ([a-z]+)$", _text("README.md"), re.MULTILINE):
        assert target in targets


def _text(name: str) -> str:
    return (ROOT / name).read_text()


def _names(lock: str) -> list[str]:
    return re.findall(r"^([a-z0-9][^\s=]*)==", _text(lock), re.MULTILINE)

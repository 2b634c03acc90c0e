"""Every case that is told as a scenario: in memory, on the real ledger, and to a whole service."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from connectors.scenarios.reading import ScenarioWrong, read_scenario
from connectors.wiring.scenarios import (
    memory_stage,
    postgres_stage,
    tell_file,
    tell_to_service,
)

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*.yaml"))
BY_WORD = [
    HERE / "s1_a_stranger_is_told_not_found.yaml",
    HERE / "t7_the_same_hole_is_given_once.yaml",
]
"""Told by the command line too, a process for each command."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is short enough for a socket."""
    with TemporaryDirectory(prefix="gpuledger-") as name:
        yield Path(name)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_story_goes_as_told_in_memory(file: Path) -> None:
    assert tell_file(file, memory_stage()).events > 0


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_story_goes_as_told_on_postgresql(file: Path, postgres_dsn: str) -> None:
    stage = postgres_stage(postgres_dsn)
    try:
        assert tell_file(file, stage).events > 0
    finally:
        stage.close()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_story_goes_as_told_over_http(file: Path, folder: Path, postgres_dsn: str) -> None:
    assert tell_to_service(file, folder, postgres_dsn, "http").events > 0


@pytest.mark.parametrize("file", BY_WORD, ids=lambda file: file.stem)
def test_the_story_goes_as_told_on_the_command_line(
    file: Path, folder: Path, postgres_dsn: str
) -> None:
    assert tell_to_service(file, folder, postgres_dsn, "cli").events > 0


def test_an_error_names_file_line_and_step(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(
        "name: wrong\nfleet: {nodes: 1}\nsteps:\n"
        "  - book: {tenant: a, gpus: 8, from: +1h, to: +2h}\n"
        "  - book: {tenant: a, gpus: 8, from: +1h, to: +2h, offers: 0}\n"
    )
    with pytest.raises(ScenarioWrong, match=r"wrong\.yaml:5: step 2: expected accepted"):
        tell_file(file, memory_stage())


def test_an_unknown_word_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("name: wrong\nsteps:\n  - bok: {tenant: a}\n")
    with pytest.raises(ScenarioWrong, match=r"wrong\.yaml:3: step 1: .*bok"):
        read_scenario(file)

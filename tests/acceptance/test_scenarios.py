"""Every case that is told as a scenario, in memory and on the real ledger."""

from pathlib import Path

import pytest

from connectors.scenarios.reading import ScenarioWrong, read_scenario
from connectors.wiring.scenarios import memory_stage, postgres_stage, tell_file

FILES = sorted(Path(__file__).parent.glob("*.yaml"))


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

"""A told story as a picture, and the results of many as JUnit XML."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from connectors.cli.app import app
from connectors.wiring.scenarios import memory_stage, tell_file
from projections.gantt import Gantt, svg

STORIES = Path(__file__).parent.parent / "acceptance"
HOUR = 3_600_000_000


def told(stem: str) -> Gantt:
    return tell_file(STORIES / f"{stem}.yaml", memory_stage()).picture


def test_a_story_is_drawn_as_it_went() -> None:
    picture = told("f3_stripped_by_a_maintenance_and_healed_when_it_ends_early")
    hours = {
        (b.name, (b.start - picture.start) // HOUR, (b.end - picture.start) // HOUR)
        for b in picture.bars
    }
    assert hours == {("R", 3, 5)}
    [down] = picture.downs
    assert ((down.start - picture.start) // HOUR, (down.end - picture.start) // HOUR) == (1, 3)
    assert down.why.startswith("maintenance")


def test_a_failed_gpu_is_drawn_where_it_is() -> None:
    picture = told("f7_one_gpu_of_eight_touches_one_holder")
    [down] = picture.downs
    assert down.width_milli == 1000
    assert down.end == picture.end
    assert not [
        bar
        for bar in picture.bars
        if bar.first_milli <= down.first_milli < bar.first_milli + bar.width_milli
        and bar.end > down.start
    ]


@pytest.mark.parametrize("file", sorted(STORIES.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_story_has_a_picture_and_every_event_a_mark(file: Path) -> None:
    story = tell_file(file, memory_stage())
    assert sum(len(mark.told.splitlines()) for mark in story.picture.marks) >= story.events
    assert ET.fromstring(svg(story.picture)).tag.endswith("svg")


def test_results_are_written_for_build_servers(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("name: w\nsteps:\n  - book: {tenant: a, gpus: 99, from: +1h, to: +2h}\n")
    good = STORIES / "t7_the_same_hole_is_given_once.yaml"
    words = ["scenario", "run", str(good), str(wrong), "--junit", str(tmp_path / "out.xml")]
    result = CliRunner().invoke(app, [*words, "--svg", str(tmp_path / "pictures")])
    assert result.exit_code == 1
    suite = ET.parse(tmp_path / "out.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    [failure] = suite.iter("failure")
    assert "wrong.yaml:3: step 1" in str(failure.get("message"))
    assert [path.stem for path in (tmp_path / "pictures").iterdir()] == [good.stem]

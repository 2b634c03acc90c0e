"""The command line's own words: durations, times, and where `--json` may stand."""

import pytest
import typer

from connectors.cli.app import json_first
from connectors.cli.console import duration, instant


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90m", 5400), ("4h", 14_400), ("2d", 172_800), ("1h30m", 5400), ("45s", 45), ("1w", 604_800)],
)
def test_a_duration_is_numbers_with_units(text: str, seconds: int) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "4", "h", "0h", "4x", "-4h", "1.5h", "4h30"])
def test_what_is_no_duration_is_said_to_be_none(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        duration(text)


def test_a_time_is_taken_in_its_zone() -> None:
    assert instant("2030-07-01T09:00", "Europe/Berlin") == "2030-07-01T07:00:00Z"
    assert instant("2030-07-01T09:00+00:00", "Europe/Berlin") == "2030-07-01T09:00:00Z"


def test_now_is_left_to_the_ledger() -> None:
    assert instant("now") is None


def test_a_clock_may_be_short() -> None:
    assert instant("tomorrow 9", "UTC") == instant("tomorrow 09:00", "UTC")
    assert instant("today", "UTC") == instant("today 00:00", "UTC")
    assert instant("23:59", "UTC") == instant("today 23:59", "UTC")


@pytest.mark.parametrize(
    "text",
    ["", " ", "tomorrow 25:00", "tomorrow morning", "today 9:99", "99:00", "soon", "2030-13-01"],
)
def test_what_is_no_time_is_never_guessed(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        instant(text)


def test_a_zone_must_be_known() -> None:
    with pytest.raises(typer.BadParameter):
        instant("tomorrow 09:00", "Mars/Olympus")


def test_json_holds_wherever_it_stands() -> None:
    assert json_first(["status", "--json"]) == ["--json", "status"]
    assert json_first(["--json", "node", "list"]) == ["--json", "node", "list"]
    assert json_first(["why", "--", "--json"]) == ["why", "--", "--json"]
    assert json_first(["status"]) == ["status"]

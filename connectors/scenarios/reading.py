"""Scenario files: read, held against their schema, errors with file, line and step."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from domain.timespan import MICROSECONDS, Instant
from schemas.json_form import instant_of, instant_text

START = "2026-01-01T00:00:00Z"
SCHEMA = Path(__file__).parent / "scenario.schema.json"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class ScenarioWrong(Exception):
    """A scenario that cannot be read, or whose story went another way; file, line and step."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A story as it stands in its file."""

    file: Path
    name: str
    start: Instant
    values: Mapping[str, Any]
    lines: tuple[int, ...]
    """The line of each step."""

    @property
    def steps(self) -> list[dict[str, Any]]:
        """What happens, in order."""
        steps: list[dict[str, Any]] = self.values["steps"]
        return steps

    def wrong(self, step: int, problem: str) -> ScenarioWrong:
        """An error at a step."""
        return ScenarioWrong(f"{self.file}:{self.lines[step]}: step {step + 1}: {problem}")

    def instant(self, text: str) -> Instant:
        """`+90m`, `+1h30m`, `+2d` after the start, or RFC 3339."""
        if not text.startswith("+"):
            return instant_of(text)
        total, number = 0.0, ""
        for letter in text[1:]:
            if letter in _UNITS and number:
                total += float(number) * _UNITS[letter]
                number = ""
            else:
                number += letter
        if number.strip("0"):
            raise ValueError(f"{text!r} is no offset; write +90m, +1h30m or +0s")
        return Instant(self.start + round(total * MICROSECONDS))

    def plain(self, value: Any, names: Mapping[str, str]) -> Any:  # noqa: ANN401 - any YAML
        """Fields with offsets as instants and `$NAME` as ids."""
        if isinstance(value, dict):
            return {key: self.plain(each, names) for key, each in value.items()}
        if isinstance(value, list):
            return [self.plain(each, names) for each in value]
        if isinstance(value, datetime):
            return value.isoformat()
        if isinstance(value, str) and value.startswith("+"):
            return instant_text(self.instant(value))
        if isinstance(value, str) and value.startswith("$"):
            if value[1:] not in names:
                raise ValueError(f"nothing is named {value[1:]} yet")
            return names[value[1:]]
        return value


@cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(json.loads(SCHEMA.read_text()))


def read_scenario(file: Path) -> Scenario:
    """The story of a file. Raises `ScenarioWrong`."""
    try:
        text = file.read_text()
        node = yaml.compose(text, yaml.SafeLoader)
        values = yaml.safe_load(text)
    except OSError as error:
        raise ScenarioWrong(f"{file}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ScenarioWrong(f"{file}: {error}") from error
    lines = _step_lines(node)
    for fault in _validator().iter_errors(values):
        path = list(fault.absolute_path)
        in_step = len(path) > 1 and path[0] == "steps" and isinstance(path[1], int)
        where = f":{lines[int(path[1])]}: step {int(path[1]) + 1}" if in_step else ""
        raise ScenarioWrong(f"{file}{where}: {'/'.join(map(str, path))}: {fault.message}")
    start = values.get("start", START)
    if not isinstance(start, str):
        start = start.isoformat()
    return Scenario(file, values["name"], instant_of(start), values, lines)


def _step_lines(node: Any) -> tuple[int, ...]:  # noqa: ANN401 - a YAML node
    """The line on which each step begins."""
    for key, value in getattr(node, "value", ()):
        if key.value == "steps" and isinstance(value.value, list):
            return tuple(item.start_mark.line + 1 for item in value.value)
    return ()

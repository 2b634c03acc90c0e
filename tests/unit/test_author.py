"""Contracts are written for what is new, and never over what stands."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from schemas import author as authoring
from schemas.author import author


@dataclass(frozen=True, slots=True)
class Told:
    """Something was told."""

    milli: int


@dataclass(frozen=True, slots=True)
class Added:
    """Something was told, and why."""

    milli: int
    reason: str | None = None


Added.__name__ = "Told"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(authoring, "AVRO", tmp_path)
    monkeypatch.setattr(authoring, "IDS", tmp_path / "ids.json")
    monkeypatch.setattr(authoring, "COMMANDS", {})
    monkeypatch.setattr(authoring, "MESSAGES", {})
    monkeypatch.setattr(authoring, "FACTS", {"Told": Told})
    assert [path.name for path in author()] == ["Told.v1.avsc"]
    return tmp_path


def _ids(folder: Path) -> dict[str, int]:
    ids: dict[str, int] = json.loads((folder / "ids.json").read_text())
    return ids


def test_what_stands_is_left_alone() -> None:
    assert author() == author(young=True) == []


def test_a_changed_class_gets_a_next_version_with_an_id_of_its_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (folder / "events" / "Told.v1.avsc").read_text()
    monkeypatch.setattr(authoring, "FACTS", {"Told": Added})
    assert [path.name for path in author()] == ["Told.v2.avsc"]
    assert author() == []
    assert (folder / "events" / "Told.v1.avsc").read_text() == before
    assert _ids(folder) == {"Told.v1": 1, "Told.v2": 2}


def test_a_young_version_is_written_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authoring, "FACTS", {"Told": Added})
    assert [path.name for path in author(young=True)] == ["Told.v1.avsc"]
    assert _ids(folder) == {"Told.v1": 1}


def test_a_contract_that_is_no_longer_young_is_never_written_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authoring, "FACTS", {"Told": Added})
    author()
    monkeypatch.setattr(authoring, "FACTS", {"Told": Told})
    assert [path.name for path in author(young=True)] == ["Told.v3.avsc"]


def test_the_id_of_a_contract_that_is_gone_is_not_given_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "ids.json").write_text(json.dumps({"Gone.v1": 1, "Told.v1": 7}))
    monkeypatch.setattr(authoring, "FACTS", {"Told": Added})
    author()
    assert _ids(folder)["Told.v2"] == 8

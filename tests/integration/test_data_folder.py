"""A data folder: one process at a time, one clock for ever, one format per release."""

import json
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from connectors.embedded.folder import FORMAT, MARK, DataFolder, FolderRefused

ROOT = Path(__file__).parents[2]


def test_a_folder_is_made_where_there_is_none(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path / "deep" / "down")
    assert json.loads((folder.path / MARK).read_text()) == {"format": FORMAT, "clock": "wall"}
    folder.close()


def test_a_closed_folder_opens_again(tmp_path: Path) -> None:
    for _ in range(2):
        DataFolder.open(tmp_path).close()


def test_a_second_process_is_told_who_has_the_folder_open(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import sys
        from pathlib import Path
        from connectors.embedded.folder import DataFolder
        DataFolder.open(Path(sys.argv[1]))
        print("open", flush=True)
        sys.stdin.read()
    """)
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(FolderRefused, match=f"open in process {other.pid};"):
            DataFolder.open(tmp_path)
        other.kill()
    DataFolder.open(tmp_path).close()


def test_the_other_clock_is_refused_and_the_folder_left_free(tmp_path: Path) -> None:
    DataFolder.open(tmp_path, clock="virtual").close()
    with pytest.raises(FolderRefused, match="made for a virtual clock, not for a wall one"):
        DataFolder.open(tmp_path, clock="wall")
    DataFolder.open(tmp_path, clock="virtual").close()


@pytest.mark.parametrize("version", [FORMAT + 1, 0, "1", None])
def test_another_version_is_refused_and_nothing_changed(tmp_path: Path, version: object) -> None:
    mark = tmp_path / MARK
    mark.write_text(text := json.dumps({"format": version, "clock": "wall"}))
    with pytest.raises(FolderRefused, match="use the release that made it"):
        DataFolder.open(tmp_path)
    assert mark.read_text() == text


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '"gpuledger"'])
def test_a_mark_that_is_no_mark_is_refused_in_words(tmp_path: Path, text: str) -> None:
    (tmp_path / MARK).write_text(text)
    with pytest.raises(FolderRefused, match=MARK):
        DataFolder.open(tmp_path)


def test_a_folder_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FolderRefused, match=r"cannot use .*/file"):
        DataFolder.open(tmp_path / "file" / "below")


def test_a_secret_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path)
    secret = folder.secret("postgres")
    assert len(secret) == 32
    assert folder.secret("postgres") == secret != folder.secret("fingerprint")
    assert stat.S_IMODE((tmp_path / "postgres.secret").stat().st_mode) == 0o600
    folder.close()


def test_a_full_disk_is_told_and_leaves_no_half_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as broken:
        broken.setattr(Path, "write_text", full)
        with pytest.raises(FolderRefused, match="No space left on device"):
            DataFolder.open(tmp_path)
    DataFolder.open(tmp_path).close()

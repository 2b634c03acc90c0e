"""A data folder: whose clock it keeps, which release made it, and who has it open."""

import fcntl
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Self

FORMAT = 1
MARK = "gpuledger.json"
LOCK = "lock"
SECRET_BYTES = 32


class FolderRefused(Exception):
    """The data folder cannot be opened; the words say why and what to do."""


@dataclass(slots=True)
class DataFolder:
    """An open data folder; nobody else can open it until it is closed."""

    path: Path
    clock: str
    _lock: int

    @classmethod
    def open(cls, path: Path, *, clock: str = "wall") -> Self:
        """Open a folder, or make it. Raises `FolderRefused`."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise FolderRefused(f"cannot use {path}: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            pid = os.pread(lock, 32, 0).decode().strip() or "another process"
            os.close(lock)
            raise FolderRefused(
                f"{path} is open in process {pid}; stop it, or give another folder with --data"
            ) from error
        try:
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
            _check_mark(path, clock)
        except OSError as error:
            os.close(lock)
            raise FolderRefused(f"cannot use {path}: {error.strerror}") from error
        except FolderRefused:
            os.close(lock)
            raise
        return cls(path.resolve(), clock, lock)

    def secret(self, name: str) -> bytes:
        """A random secret that is made once and kept for its owner's eyes only."""
        file = self.path / f"{name}.secret"
        if not file.exists():
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as out:
                out.write(secrets.token_hex(SECRET_BYTES))
        return read_secret(self.path, name)

    def close(self) -> None:
        """Let others open it."""
        os.close(self._lock)


def read_secret(path: Path, name: str) -> bytes:
    """A secret of a folder that a service runs over. Raises `FolderRefused` when it is not there."""
    file = path / f"{name}.secret"
    try:
        return bytes.fromhex(file.read_text())
    except (OSError, ValueError) as error:
        raise FolderRefused(f"{file} cannot be read: {error}") from error


def _check_mark(path: Path, clock: str) -> None:
    """The folder was made by this format and for this clock, or is new."""
    mark = path / MARK
    if not mark.exists():
        fresh = path / f"{MARK}.new"
        fresh.write_text(json.dumps({"format": FORMAT, "clock": clock}) + "\n")
        fresh.rename(mark)
        return
    try:
        known = json.loads(mark.read_text())
    except ValueError as error:
        raise FolderRefused(f"{mark} is not readable: {error}") from error
    if not isinstance(known, dict):
        raise FolderRefused(f"{mark} is not readable: it is no JSON object")
    if known.get("format") != FORMAT:
        raise FolderRefused(
            f"{path} has format {known.get('format')}, this release reads {FORMAT}; "
            "use the release that made it, or another folder with --data"
        )
    if known.get("clock") != clock:
        raise FolderRefused(
            f"{path} was made for a {known.get('clock')} clock, not for a {clock} one; "
            "give another folder with --data"
        )

"""Files below a data folder: where the service is, and the tokens of its owner."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

ENVIRONMENT_FOLDER = "GPULEDGER_DATA_DIR"
DEFAULT_FOLDER = ".gpuledger"
SOCKET_BYTES_MAX = 100


@dataclass(frozen=True, slots=True)
class Service:
    """Where one service is, and how its parts reach each other."""

    dsn: str
    socket: str
    url: str
    pid: int
    tokens: dict[str, str]
    """A token for each role, for the owner of the folder."""


def default_folder() -> Path:
    """The data folder that is meant when none is named."""
    return Path(os.environ.get(ENVIRONMENT_FOLDER) or DEFAULT_FOLDER)


def write_service(folder: Path, service: Service) -> None:
    """Let others find the service; only its owner can read it."""
    path = folder / "service.json"
    fresh = folder / "service.new"
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        json.dump(asdict(service), out)
    fresh.rename(path)


def read_service(folder: Path) -> Service | None:
    """The service that runs over a folder, if one does."""
    path = folder / "service.json"
    try:
        return Service(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def forget_service(folder: Path) -> None:
    """The service has stopped."""
    (folder / "service.json").unlink(missing_ok=True)

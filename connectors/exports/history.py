"""A history in a folder: every event's bytes, their contracts, a signed checkpoint; nothing else is needed.

`events.avro` is an Avro container of records {envelope, body} in order; `schemas/` holds the contract
of the envelope and of each type that occurs; `manifest.json` has the size, the root and the SHA-256 of
each other file; `checkpoint.note` is a signed note, `key.txt` the key that it names.
"""

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import fastavro

from domain.journal import StoredEvent
from schemas.registry import AVRO, Registry

FORMAT = 1
EVENTS, MANIFEST, NOTE, KEY, SCHEMAS = (
    "events.avro",
    "manifest.json",
    "checkpoint.note",
    "key.txt",
    "schemas",
)
_SCHEMA = fastavro.parse_schema(
    {
        "type": "record",
        "name": "StoredEvent",
        "namespace": "gpuledger.export",
        "doc": "One event: leaf = SHA-256(0x00 || envelope || body).",
        "fields": [{"name": "envelope", "type": "bytes"}, {"name": "body", "type": "bytes"}],
    }
)
_CHUNK = 1 << 20


class FolderWrong(Exception):
    """A folder that holds no history, or one that was changed; the words say what and where."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a folder says that it holds."""

    events: int
    root: bytes
    note: str


def write_history(
    folder: Path,
    events: Iterable[StoredEvent],
    registry: Registry,
    root: bytes,
    note: str,
    key: str,
) -> Manifest:
    """Write a history into a folder that is empty or not there. Raises `FolderWrong`."""
    try:
        (folder / SCHEMAS).mkdir(parents=True)
    except FileExistsError as error:
        raise FolderWrong(f"{folder} is not empty: name another folder") from error
    types: set[str] = set()
    count = 0

    def rows() -> Iterator[dict[str, bytes]]:
        nonlocal count
        for event in events:
            types.add(event.type)
            count += 1
            yield {"envelope": event.envelope, "body": event.body}

    with (folder / EVENTS).open("wb") as out:
        fastavro.writer(out, _SCHEMA, rows(), codec="deflate")
    shutil.copy(AVRO / "Envelope.avsc", folder / SCHEMAS)
    for name in sorted(types):
        shutil.copy(registry.by_type[name].path, folder / SCHEMAS)
    (folder / NOTE).write_text(note)
    (folder / KEY).write_text(key + "\n")
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    content = {
        "format": FORMAT,
        "events": count,
        "root": root.hex(),
        "files": {str(path.relative_to(folder)): _digest(path) for path in files},
    }
    (folder / MANIFEST).write_text(json.dumps(content, indent=2) + "\n")
    return Manifest(count, root, note)


def read_manifest(folder: Path) -> Manifest:
    """What a folder says of itself, once each of its files is what it was. Raises `FolderWrong`."""
    try:
        content: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
        if content["format"] != FORMAT:
            raise FolderWrong(
                f"{folder} has format {content['format']}, this release reads {FORMAT}"
            )
        note = (folder / NOTE).read_text()
        found = Manifest(int(content["events"]), bytes.fromhex(content["root"]), note)
        files: dict[str, str] = dict(content["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FolderWrong(f"{folder} holds no exported history: {error}") from error
    for name, digest in files.items():
        path = folder / name
        if not path.is_file() or _digest(path) != digest:
            raise FolderWrong(f"{path} is missing or another file than was exported")
    return found


def read_history(folder: Path) -> Iterator[tuple[bytes, bytes]]:
    """Envelope and body of each event, in order. Raises `FolderWrong` where the file breaks off."""
    path = folder / EVENTS
    try:
        with path.open("rb") as file:
            for row in fastavro.reader(file):
                yield row["envelope"], row["body"]
    except (OSError, ValueError, EOFError, KeyError, TypeError, IndexError) as error:
        raise FolderWrong(f"{path} cannot be read on: {error or type(error).__name__}") from error


def _digest(path: Path) -> str:
    found = sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()

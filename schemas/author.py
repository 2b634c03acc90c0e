"""Writing contracts: `python -m schemas.author` makes the .avsc of each new fact, command and message.

A class that has changed gets a next version; an existing version is never altered. `--young`
rewrites version 1 instead, while nobody has data yet.
"""

import argparse
import json
from pathlib import Path

from fastavro.schema import to_parsing_canonical_form

from domain.commands import COMMANDS
from domain.facts import FACTS
from domain.messages import MESSAGES
from schemas.registry import AVRO, IDS
from schemas.shapes import Schema, field_names, schema_of

GLOSSARY = Path(__file__).parent / "glossary.json"


def missing_words() -> list[str]:
    """Field names that the glossary does not explain."""
    glossary = json.loads(GLOSSARY.read_text())
    records = [*FACTS.values(), *COMMANDS.values(), *MESSAGES.values()]
    return sorted({name for record in records for name in field_names(record)} - glossary.keys())


def author(*, young: bool = False) -> list[Path]:
    """Write what is missing, and pin an id for it; the paths that were written."""
    glossary = json.loads(GLOSSARY.read_text())
    ids: dict[str, int] = json.loads(IDS.read_text()) if IDS.exists() else {}
    written: list[Path] = []
    for kind, records in (("events", FACTS), ("commands", COMMANDS), ("messages", MESSAGES)):
        (AVRO / kind).mkdir(parents=True, exist_ok=True)
        for name, record in records.items():
            schema = schema_of(record, glossary)
            path = _path_to_write(AVRO / kind, name, schema, young=young)
            if path is not None:
                path.write_text(_text(schema))
                ids.setdefault(path.stem, max(ids.values(), default=0) + 1)
                written.append(path)
    IDS.write_text(json.dumps(ids, indent=2) + "\n")
    return written


def _text(schema: Schema) -> str:
    return json.dumps(schema, indent=2) + "\n"


def _path_to_write(folder: Path, name: str, schema: Schema, *, young: bool) -> Path | None:
    """The version that a class's contract must be written as; None when it stands."""
    newest = len(list(folder.glob(f"{name}.v*.avsc")))
    path = folder / f"{name}.v{newest}.avsc"
    if newest == 1 and young:
        return None if path.read_text() == _text(schema) else path
    if newest and _shape(json.loads(path.read_text())) == _shape(schema):
        return None
    return folder / f"{name}.v{newest + 1}.avsc"


def _shape(schema: Schema) -> str:
    """What readers and writers must agree on: everything but the words."""
    return str(to_parsing_canonical_form(schema))


def main() -> None:
    """Write, and say what was written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--young", action="store_true", help="rewrite version 1")
    for path in author(young=parser.parse_args().young):
        print(path)  # noqa: T201 - a tool that prints


if __name__ == "__main__":
    main()

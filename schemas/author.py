"""Writing contracts: `python -m schemas.author` makes the .avsc of each new fact and command.

An existing version is never altered; `--young` rewrites version 1 while nobody has data yet.
"""

import argparse
import json
from pathlib import Path

from domain.commands import COMMANDS
from domain.facts import FACTS
from schemas.registry import AVRO, IDS
from schemas.shapes import field_names, schema_of

GLOSSARY = Path(__file__).parent / "glossary.json"


def missing_words() -> list[str]:
    """Field names that the glossary does not explain."""
    glossary = json.loads(GLOSSARY.read_text())
    records = [*FACTS.values(), *COMMANDS.values()]
    return sorted({name for record in records for name in field_names(record)} - glossary.keys())


def author(*, young: bool = False) -> list[Path]:
    """Write what is missing, and pin an id for it; the paths that were written."""
    glossary = json.loads(GLOSSARY.read_text())
    ids: dict[str, int] = json.loads(IDS.read_text()) if IDS.exists() else {}
    written: list[Path] = []
    for kind, records in (("events", FACTS), ("commands", COMMANDS)):
        (AVRO / kind).mkdir(parents=True, exist_ok=True)
        for name, record in records.items():
            path = AVRO / kind / f"{name}.v1.avsc"
            text = json.dumps(schema_of(record, glossary), indent=2) + "\n"
            stale = young and path.exists() and path.read_text() != text
            if not any((AVRO / kind).glob(f"{name}.v*.avsc")) or stale:
                path.write_text(text)
                written.append(path)
            ids.setdefault(path.stem, len(ids) + 1)
    IDS.write_text(json.dumps(ids, indent=2) + "\n")
    return written


def main() -> None:
    """Write, and say what was written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--young", action="store_true", help="rewrite version 1")
    for path in author(young=parser.parse_args().young):
        print(path)  # noqa: T201 - a tool that prints


if __name__ == "__main__":
    main()

"""The reference page of all contracts, written from their .avsc files: docs/events.md."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from schemas.registry import Contract, registry

HEAD = """# Events, commands and messages

Written from `schemas/avro/` by `python -m connectors.cli.reference`; a test holds it current. One table for each contract: its
fields in the order in which they are written, their Avro types, and what they mean. Instants are microseconds since 1970 UTC,
spans are half-open, `milli` is a thousandth of a GPU. An id stands for a contract in the Confluent wire format, for ever.
[The format of events](events-format.md) tells how they lie in the log, [Kafka](kafka.md) how they travel.
"""

_TITLES = {
    "events": "Events: what happened",
    "commands": "Commands: what is asked",
    "messages": "Messages: what others are told",
}


def events_page() -> str:
    """docs/events.md."""
    lines = [HEAD]
    contracts = registry().by_type.values()
    for kind, title in _TITLES.items():
        lines.append(f"## {title}\n")
        for contract in sorted((c for c in contracts if c.kind == kind), key=lambda c: c.type):
            lines += _told(contract)
    return "\n".join(lines).rstrip("\n") + "\n"


def _told(contract: Contract) -> Iterator[str]:
    schema = json.loads(contract.path.read_text())
    yield f"### {contract.type} (id {contract.id})\n"
    yield f"{schema.get('doc', '')}\n"
    if not schema["fields"]:
        yield "No fields.\n"
        return
    yield "| field | type | meaning |"
    yield "|---|---|---|"
    yield from _rows(schema, "")
    yield ""


def _rows(schema: Mapping[str, Any], prefix: str) -> Iterator[str]:
    """A row per field, those of records inside below their own."""
    for field in schema["fields"]:
        name = f"{prefix}{field['name']}"
        yield f"| `{name}` | {_type(field['type'])} | {field.get('doc', '')} |"
        inner, ending = _record_in(field["type"])
        if inner is not None:
            yield from _rows(inner, f"{name}{ending}.")


def _type(kind: Any) -> str:  # noqa: ANN401 - Avro types are texts, lists and objects
    match kind:
        case str():
            return kind.rsplit(".", 1)[-1]
        case list():
            return " or ".join(map(_type, kind))
        case {"type": "array", "items": items}:
            return f"list of {_type(items)}"
        case {"type": "map", "values": values}:
            return f"map of {_type(values)}"
        case {"name": name}:
            return str(name)
        case _:
            return str(kind["type"])


def _record_in(kind: Any) -> tuple[Mapping[str, Any] | None, str]:  # noqa: ANN401 - as above
    """The record that a type defines, if it does, and whether there may be many of it."""
    match kind:
        case {"type": "record"}:
            return kind, ""
        case {"type": "array", "items": items}:
            return _record_in(items)[0], "[]"
        case list():
            return next(((r, e) for arm in kind for r, e in [_record_in(arm)] if r), (None, ""))
        case _:
            return None, ""

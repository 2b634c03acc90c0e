"""Whether all versions of a contract can read each other: FULL_TRANSITIVE, pair by pair.

By the schema resolution of the Avro specification 1.12, with one rule that is narrower: a type
may widen from int to long only, which no pair in both directions survives.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

Schema = Any
Names = dict[str, Schema]

_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


def incompatibilities(versions: Mapping[int, Schema]) -> list[str]:
    """Why some version cannot read what another wrote, in both directions; none is well."""
    return [
        f"v{reader} cannot read v{writer}: {problem}"
        for reader, writer in permutations(sorted(versions), 2)
        for problem in unreadable(versions[reader], versions[writer])
    ]


def unreadable(reader: Schema, writer: Schema) -> list[str]:
    """Why a reader's schema cannot read what a writer's schema wrote, each with its place."""
    pair = _Pair(_names_of(reader), _names_of(writer))
    return list(pair.problems(reader, writer, ""))


class _Pair:
    """Two schemas being compared: their named types, and the pairs that are already at hand."""

    def __init__(self, reader_names: Names, writer_names: Names) -> None:
        self._reader_names = reader_names
        self._writer_names = writer_names
        self._begun: set[tuple[str, str]] = set()

    def problems(self, reader: Schema, writer: Schema, place: str) -> Iterator[str]:
        """What stands between the two types at a place."""
        reader = _resolved(reader, self._reader_names)
        writer = _resolved(writer, self._writer_names)
        if isinstance(writer, list):
            for arm in writer:
                yield from self.problems(reader, arm, place)
        elif isinstance(reader, list):
            yield from self._in_some_arm(reader, writer, place)
        elif _kind(reader) != _kind(writer):
            if (_kind(reader), _kind(writer)) != ("long", "int"):
                yield f"{place or '/'}: {_kind(writer)} is not {_kind(reader)}"
        else:
            yield from self._inside(reader, writer, place)

    def _in_some_arm(self, reader: Sequence[Schema], writer: Schema, place: str) -> Iterator[str]:
        if not any(not list(self.problems(arm, writer, place)) for arm in reader):
            yield f"{place or '/'}: {_kind(writer)} is none of the reader's choices"

    def _inside(self, reader: Schema, writer: Schema, place: str) -> Iterator[str]:
        match _kind(reader):
            case "record":
                yield from self._fields(reader, writer, place)
            case "array":
                yield from self.problems(reader["items"], writer["items"], f"{place}/*")
            case "map":
                yield from self.problems(reader["values"], writer["values"], f"{place}/*")
            case "fixed":
                if (reader["size"], _name(reader)) != (writer["size"], _name(writer)):
                    yield f"{place or '/'}: another size or name"
            case "enum":
                if not set(writer["symbols"]) <= set(reader["symbols"]):
                    yield f"{place or '/'}: symbols that the reader does not know"

    def _fields(self, reader: Schema, writer: Schema, place: str) -> Iterator[str]:
        if _name(reader) != _name(writer):
            yield f"{place or '/'}: record {_name(writer)} is not {_name(reader)}"
        pair = (_name(reader), _name(writer))
        if pair in self._begun:
            return
        self._begun.add(pair)
        written = {field["name"]: field["type"] for field in writer["fields"]}
        for field in reader["fields"]:
            inside = f"{place}/{field['name']}"
            if field["name"] in written:
                yield from self.problems(field["type"], written[field["name"]], inside)
            elif "default" not in field:
                yield f"{inside}: was not written and has no default"
        self._begun.discard(pair)


def _name(schema: Schema) -> str:
    return str(schema["name"]).rsplit(".", 1)[-1]


def _kind(schema: Schema) -> str:
    if isinstance(schema, list):
        return "union"
    return schema if isinstance(schema, str) else str(schema["type"])


def _resolved(schema: Schema, names: Names) -> Schema:
    """What a schema stands for: the definition behind a name, the name in `{"type": name}`."""
    while isinstance(schema, dict) and _is_wrapped(schema):
        schema = schema["type"]
    if isinstance(schema, str) and schema not in _PRIMITIVES:
        return names[schema.rsplit(".", 1)[-1]]
    return schema


def _is_wrapped(schema: Schema) -> bool:
    inner = schema["type"]
    return not isinstance(inner, str) or inner in _PRIMITIVES


def _names_of(schema: Schema) -> Names:
    """Every named type inside a schema, by its last name."""
    names: Names = {}
    for found in _walk(schema):
        assert _name(found) not in names, f"{_name(found)} is defined twice"
        names[_name(found)] = found
    return names


def _walk(schema: Schema) -> Iterator[Schema]:
    if isinstance(schema, list):
        for arm in schema:
            yield from _walk(arm)
    elif isinstance(schema, dict):
        if "name" in schema and "type" in schema and isinstance(schema["type"], str):
            yield schema
        for inner in schema.get("fields", ()):
            yield from _walk(inner["type"])
        for part in ("items", "values", "type"):
            if isinstance(schema.get(part), dict | list):
                yield from _walk(schema[part])

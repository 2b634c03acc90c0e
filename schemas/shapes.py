"""From a frozen dataclass to its Avro record: one field each, types by annotation."""

import dataclasses
import types
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

NAMESPACE = "gpuledger"

Schema = dict[str, Any]


_HINTS: dict[type[Any], dict[str, Any]] = {}


def hints_of(record: type[Any]) -> dict[str, Any]:
    """The resolved annotations of a dataclass, by field; looked up once."""
    if record in _HINTS:
        return _HINTS[record]
    hints = get_type_hints(record)
    _HINTS[record] = {field.name: plain(hints[field.name]) for field in dataclasses.fields(record)}
    return _HINTS[record]


def plain(annotation: Any) -> Any:  # noqa: ANN401 - annotations are of any kind
    """An annotation without its new-type names."""
    while isinstance(annotation, NewType):
        annotation = annotation.__supertype__
    return annotation


def optional(annotation: Any) -> Any | None:  # noqa: ANN401 - annotations are of any kind
    """What an optional annotation holds when it holds something; None when it is not optional."""
    if get_origin(annotation) in {Union, types.UnionType}:
        inner = [plain(arg) for arg in get_args(annotation) if arg is not type(None)]
        assert len(inner) == 1, annotation
        return inner[0]
    return None


def element(annotation: Any) -> Any | None:  # noqa: ANN401 - annotations are of any kind
    """What a `tuple[X, ...]` is made of; None when it is none."""
    if get_origin(annotation) is tuple:
        return plain(get_args(annotation)[0])
    return None


def is_map(annotation: Any) -> bool:  # noqa: ANN401 - annotations are of any kind
    """Whether an annotation is a map of texts."""
    origin = get_origin(annotation)
    return isinstance(origin, type) and issubclass(origin, Mapping)


_PRIMITIVES: dict[Any, str] = {str: "string", int: "long", bool: "boolean", bytes: "bytes"}


def schema_of(record: type, glossary: Mapping[str, str]) -> Schema:
    """The Avro record schema of a dataclass; nested records are named once and referred to."""
    return _record(record, glossary, set())


def _record(record: type, glossary: Mapping[str, str], named: set[str]) -> Schema:
    named.add(record.__name__)
    return {
        "type": "record",
        "name": record.__name__,
        "namespace": NAMESPACE,
        "doc": first_sentence(record),
        "fields": [
            {
                "name": name,
                "doc": glossary[name],
                "type": _type(annotation, glossary, named),
                **({"default": None} if optional(annotation) is not None else {}),
            }
            for name, annotation in hints_of(record).items()
        ],
    }


def _type(annotation: Any, glossary: Mapping[str, str], named: set[str]) -> Any:  # noqa: ANN401
    inner = optional(annotation)
    if inner is not None:
        return ["null", _type(inner, glossary, named)]
    item = element(annotation)
    if item is not None:
        return {"type": "array", "items": _type(item, glossary, named)}
    if is_map(annotation):
        return {"type": "map", "values": "string"}
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        if annotation.__name__ in named:
            return f"{NAMESPACE}.{annotation.__name__}"
        return _record(annotation, glossary, named)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "string"
    return _PRIMITIVES[annotation]


def first_sentence(record: type[Any]) -> str:
    """The first line of a docstring."""
    return (record.__doc__ or "").strip().split("\n")[0]


def field_names(record: type, seen: set[type] | None = None) -> Iterator[str]:
    """The names of all fields of a dataclass and of those inside it."""
    seen = set() if seen is None else seen
    if record in seen:
        return
    seen.add(record)
    for name, annotation in hints_of(record).items():
        yield name
        inner = optional(annotation) or annotation
        inner = element(inner) or inner
        if dataclasses.is_dataclass(inner) and isinstance(inner, type):
            yield from field_names(inner, seen)

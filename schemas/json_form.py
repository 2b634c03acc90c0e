"""Commands as JSON: parsed by their annotations, with a pointer to whatever is wrong.

Instants are RFC 3339 with an offset, on whole microseconds; everything else is as Avro has it.
"""

import dataclasses
import types
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, NewType, TypeVar, Union, get_args, get_origin, get_type_hints

from domain.timespan import MICROSECONDS, Instant
from schemas.shapes import element, is_map, optional, plain

T = TypeVar("T")

TEXT_CHARACTERS_MAX = 4_096
ITEMS_MAX = 10_000
LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class BadField(ValueError):
    """A field that is not what it must be; `pointer` is an RFC 6901 JSON pointer to it."""

    def __init__(self, pointer: str, problem: str) -> None:
        """Where, and what."""
        super().__init__(f"{pointer or '/'}: {problem}")
        self.pointer = pointer
        self.problem = problem


def pointer_to(pointer: str, name: str) -> str:
    """A pointer to a member, escaped as RFC 6901 says."""
    return f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"


def text_of(value: Any, pointer: str) -> str:  # noqa: ANN401 - any JSON
    """Text that every store can keep: no NUL, no half of a surrogate pair. Raises `BadField`."""
    if not isinstance(value, str):
        raise BadField(pointer, "must be text")
    if len(value) > TEXT_CHARACTERS_MAX:
        raise BadField(pointer, f"must be at most {TEXT_CHARACTERS_MAX} characters")
    if "\0" in value or not (value.isascii() or _is_whole(value)):
        raise BadField(pointer, "must have no NUL and no lone surrogate")
    return value


def _is_whole(text: str) -> bool:
    """Whether every character of a text can be encoded."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def instant_of(text: str) -> Instant:
    """An instant from RFC 3339 text. Raises ValueError when it has no offset."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("an instant needs an offset, such as Z or +02:00")
    return Instant((moment - _EPOCH) // timedelta(microseconds=1))


def instant_text(at: int) -> str:
    """An instant as RFC 3339 text in UTC; whole seconds without a fraction."""
    moment = _EPOCH + timedelta(microseconds=at)
    style = "seconds" if at % MICROSECONDS == 0 else "microseconds"
    return moment.isoformat(timespec=style).replace("+00:00", "Z")


_FIELDS: dict[type[Any], dict[str, tuple[Any, bool]]] = {}


def _fields(record: type[Any]) -> dict[str, tuple[Any, bool]]:
    """For each field its annotation and whether it must be given; looked up once."""
    if record in _FIELDS:
        return _FIELDS[record]
    hints = get_type_hints(record)
    _FIELDS[record] = {
        field.name: (
            hints[field.name],
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
        )
        for field in dataclasses.fields(record)
    }
    return _FIELDS[record]


def parse(record: type[T], values: Any, pointer: str = "") -> T:  # noqa: ANN401 - any JSON
    """A dataclass from a JSON object. Raises `BadField`."""
    if not isinstance(values, dict):
        raise BadField(pointer, "must be an object")
    fields = _fields(record)
    for name in values:
        if name not in fields:
            known = ", ".join(sorted(fields))
            raise BadField(pointer_to(pointer, name), f"no such field; there are {known}")
    given: dict[str, Any] = {}
    for name, (annotation, needed) in fields.items():
        if name in values:
            given[name] = _value(annotation, values[name], f"{pointer}/{name}")
        elif needed and not _is_optional(annotation):
            raise BadField(f"{pointer}/{name}", "is missing")
        elif needed:
            given[name] = None
    return record(**given)


def _is_optional(annotation: Any) -> bool:  # noqa: ANN401 - annotations are of any kind
    return get_origin(annotation) in {Union, types.UnionType}


def _value(annotation: Any, value: Any, pointer: str) -> Any:  # noqa: ANN401 - any JSON
    inner = optional(annotation)
    if inner is not None:
        if value is None:
            return None
        arms = [arg for arg in get_args(annotation) if arg is not type(None)]
        return _value(arms[0], value, pointer)
    if annotation is Instant:
        return _instant(value, pointer)
    annotation = plain(annotation) if isinstance(annotation, NewType) else annotation
    if get_origin(annotation) is tuple:
        return _items(get_args(annotation)[0], value, pointer)
    if is_map(annotation):
        return _texts(value, pointer)
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        return parse(annotation, value, pointer)
    return _scalar(annotation, value, pointer)


def _scalar(annotation: Any, value: Any, pointer: str) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        known = [str(member.value) for member in annotation]
        if value not in known:
            raise BadField(pointer, f"must be one of {', '.join(known)}")
        return annotation(value)
    if annotation is bool:
        if not isinstance(value, bool):
            raise BadField(pointer, "must be true or false")
        return value
    if annotation is int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadField(pointer, "must be a whole number")
        if not LONG_MIN <= value <= LONG_MAX:
            raise BadField(pointer, "must fit into 64 bits")
        return value
    if annotation is bytes:
        return _bytes(value, pointer)
    return text_of(value, pointer)


def _instant(value: Any, pointer: str) -> Instant:  # noqa: ANN401 - any JSON
    if not isinstance(value, str):
        raise BadField(pointer, "must be an RFC 3339 instant, such as 2026-01-01T09:00:00Z")
    try:
        return instant_of(value)
    except (ValueError, OverflowError) as error:
        raise BadField(pointer, f"is no RFC 3339 instant: {error}") from error


def _items(item: Any, value: Any, pointer: str) -> tuple[Any, ...]:  # noqa: ANN401 - any JSON
    if not isinstance(value, list):
        raise BadField(pointer, "must be a list")
    if len(value) > ITEMS_MAX:
        raise BadField(pointer, f"must have at most {ITEMS_MAX} items")
    return tuple(_value(item, each, f"{pointer}/{at}") for at, each in enumerate(value))


def _texts(value: Any, pointer: str) -> Mapping[str, str]:  # noqa: ANN401 - any JSON
    if not isinstance(value, dict):
        raise BadField(pointer, "must be an object of texts")
    if len(value) > ITEMS_MAX:
        raise BadField(pointer, f"must have at most {ITEMS_MAX} members")
    for key, text in value.items():
        place = pointer_to(pointer, key)
        text_of(key, place)
        text_of(text, place)
    return value


def _bytes(value: Any, pointer: str) -> bytes:  # noqa: ANN401 - any JSON
    try:
        return bytes.fromhex(value)
    except (TypeError, ValueError) as error:
        raise BadField(pointer, "must be bytes as hex digits") from error


def render(thing: Any, annotation: Any = None) -> Any:  # noqa: ANN401 - any of our records
    """A dataclass as JSON: instants as text, bytes as hex."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        hints = _fields(type(thing))
        return {name: render(getattr(thing, name), hint) for name, (hint, _) in hints.items()}
    if annotation is not None and thing is not None:
        arms = get_args(annotation) if _is_optional(annotation) else (annotation,)
        if Instant in arms:
            return instant_text(thing)
    if isinstance(thing, Enum):
        return thing.value
    if isinstance(thing, tuple | list):
        item = get_args(annotation)[0] if element(annotation) is not None else None
        return [render(each, item) for each in thing]
    if isinstance(thing, Mapping):
        return {key: render(each) for key, each in thing.items()}
    return thing.hex() if isinstance(thing, bytes) else thing


def json_schema(record: type[Any]) -> dict[str, Any]:
    """The JSON Schema of what `parse` takes for a dataclass."""
    fields = _fields(record)
    needed = [n for n, (a, must) in fields.items() if must and not _is_optional(a)]
    return {
        "type": "object",
        "additionalProperties": False,
        "description": (record.__doc__ or "").strip().split("\n")[0],
        "properties": {name: _schema(annotation) for name, (annotation, _) in fields.items()},
        **({"required": needed} if needed else {}),
    }


def _schema(annotation: Any) -> dict[str, Any]:  # noqa: ANN401 - annotations are of any kind
    if _is_optional(annotation):
        arm = next(arg for arg in get_args(annotation) if arg is not type(None))
        return {"anyOf": [_schema(arm), {"type": "null"}]}
    if annotation is Instant:
        return {"type": "string", "format": "date-time"}
    annotation = plain(annotation)
    if get_origin(annotation) is tuple:
        return {"type": "array", "maxItems": ITEMS_MAX, "items": _schema(get_args(annotation)[0])}
    if is_map(annotation):
        return {"type": "object", "additionalProperties": {"type": "string"}}
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        return json_schema(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return {"type": "string", "enum": [str(member.value) for member in annotation]}
    kinds = {bool: "boolean", int: "integer"}
    return {"type": kinds.get(annotation, "string")}

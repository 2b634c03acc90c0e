"""Commands as JSON: parsed by their annotations, with a pointer to whatever is wrong.

Instants are RFC 3339 with an offset, on whole microseconds; everything else is as Avro has it. A note
is text to a caller; whoever takes it in seals it before the command is parsed.
"""

import dataclasses
import types
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any, NewType, TypeVar, Union, get_args, get_origin, get_type_hints

from domain.sealed import NOTE_CHARACTERS_MAX, Sealed
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

    def below(self, pointer: str) -> "BadField":
        """The same, seen from further out."""
        return BadField(pointer + self.pointer, self.problem)


def pointer_to(pointer: str, name: str) -> str:
    """A pointer to a member, escaped as RFC 6901 says."""
    return f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"


def text_of(value: Any, pointer: str = "") -> str:  # noqa: ANN401 - any JSON
    """Text that every store can keep and everyone can read. Raises `BadField`."""
    if not isinstance(value, str):
        raise BadField(pointer, "must be text")
    if len(value) > TEXT_CHARACTERS_MAX:
        raise BadField(pointer, f"must be at most {TEXT_CHARACTERS_MAX} characters")
    if not value.isprintable():
        raise BadField(pointer, "must be of printable characters")
    return value


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
    kind: Any = record
    try:
        parsed: T = _reader(kind)(values)
    except BadField as error:
        raise error.below(pointer) from None
    return parsed


Reader = Callable[[Any], Any]
"""From a JSON value to ours; raises `BadField` with a pointer from that value on."""


@cache
def _reader(annotation: Any) -> Reader:  # noqa: ANN401 - annotations are of any kind
    """What reads values of an annotation, made once: only what is wrong costs a pointer."""
    if optional(annotation) is not None:
        arms = [arg for arg in get_args(annotation) if arg is not type(None)]
        inner = _reader(arms[0])
        return lambda value: None if value is None else inner(value)
    if annotation is Instant:
        return _instant
    annotation = plain(annotation) if isinstance(annotation, NewType) else annotation
    if get_origin(annotation) is tuple:
        item = _reader(get_args(annotation)[0])
        return lambda value: _items(item, value)
    if is_map(annotation):
        return _texts
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        return _record_reader(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        members = {str(member.value): member for member in annotation}
        return lambda value: _member(members, value)
    return {bool: _flag, int: _whole, bytes: _bytes}.get(annotation, text_of)


def _record_reader(record: type[Any]) -> Reader:
    fields = {
        name: (_reader(annotation), needed, _is_optional(annotation))
        for name, (annotation, needed) in _fields(record).items()
    }

    def read(values: Any) -> Any:  # noqa: ANN401 - any JSON
        if not isinstance(values, dict):
            raise BadField("", "must be an object")
        if not values.keys() <= fields.keys():
            strange = next(name for name in values if name not in fields)
            known = ", ".join(sorted(fields))
            raise BadField(pointer_to("", strange), f"no such field; there are {known}")
        given: dict[str, Any] = {}
        for name, (reader, needed, may_be_none) in fields.items():
            if name in values:
                try:
                    given[name] = reader(values[name])
                except BadField as error:
                    raise error.below(pointer_to("", name)) from None
            elif needed and not may_be_none:
                raise BadField(f"/{name}", "is missing")
            elif needed:
                given[name] = None
        return record(**given)

    return read


def _is_optional(annotation: Any) -> bool:  # noqa: ANN401 - annotations are of any kind
    return get_origin(annotation) in {Union, types.UnionType}


def _member(members: Mapping[str, Enum], value: Any) -> Enum:  # noqa: ANN401 - any JSON
    if not isinstance(value, str) or value not in members:
        raise BadField("", f"must be one of {', '.join(members)}")
    return members[value]


def _flag(value: Any) -> bool:  # noqa: ANN401 - any JSON
    if not isinstance(value, bool):
        raise BadField("", "must be true or false")
    return value


def _whole(value: Any) -> int:  # noqa: ANN401 - any JSON
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadField("", "must be a whole number")
    if not LONG_MIN <= value <= LONG_MAX:
        raise BadField("", "must fit into 64 bits")
    return value


def _instant(value: Any) -> Instant:  # noqa: ANN401 - any JSON
    if not isinstance(value, str):
        raise BadField("", "must be an RFC 3339 instant, such as 2026-01-01T09:00:00Z")
    try:
        return instant_of(value)
    except (ValueError, OverflowError) as error:
        raise BadField("", f"is no RFC 3339 instant: {error}") from error


def _items(item: Reader, value: Any) -> tuple[Any, ...]:  # noqa: ANN401 - any JSON
    if not isinstance(value, list):
        raise BadField("", "must be a list")
    if len(value) > ITEMS_MAX:
        raise BadField("", f"must have at most {ITEMS_MAX} items")
    items = []
    for at, each in enumerate(value):
        try:
            items.append(item(each))
        except BadField as error:
            raise error.below(f"/{at}") from None
    return tuple(items)


def _texts(value: Any) -> Mapping[str, str]:  # noqa: ANN401 - any JSON
    if not isinstance(value, dict):
        raise BadField("", "must be an object of texts")
    if len(value) > ITEMS_MAX:
        raise BadField("", f"must have at most {ITEMS_MAX} members")
    for key, text in value.items():
        try:
            text_of(key)
            text_of(text)
        except BadField as error:
            raise error.below(pointer_to("", key)) from None
    return value


def _bytes(value: Any) -> bytes:  # noqa: ANN401 - any JSON
    try:
        return bytes.fromhex(value)
    except (TypeError, ValueError) as error:
        raise BadField("", "must be bytes as hex digits") from error


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
    if annotation is Sealed:
        return {"type": "string", "maxLength": NOTE_CHARACTERS_MAX}
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        return json_schema(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return {"type": "string", "enum": [str(member.value) for member in annotation]}
    if annotation is bytes:
        return {"type": "string", "contentEncoding": "base16"}
    kinds = {bool: "boolean", int: "integer"}
    return {"type": kinds.get(annotation, "string")}

"""Between frozen dataclasses and Avro bytes: strict both ways, and quick.

For each dataclass two small functions are written once, at the first use: one to the plain
values that fastavro takes, one back. fastavro checks every value against the schema.
"""

import dataclasses
import io
import operator
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeVar

from fastavro import schemaless_reader, schemaless_writer

from schemas.shapes import element, hints_of, is_map, optional
from schemas.writing import writer_of

T = TypeVar("T")
Plain = Callable[[Any], Any]

_TO_PLAIN: dict[type[Any], Plain] = {}
_FROM_PLAIN: dict[type[Any], Plain] = {}


class Malformed(ValueError):
    """Bytes that are not what their schema says, or a value that no schema can hold."""


def encode(schema: Any, thing: Any) -> bytes:  # noqa: ANN401 - a parsed schema, any dataclass
    """The Avro body of a dataclass under its parsed schema. Raises `Malformed`.

    Equal things have equal bytes: maps are written in the order of their keys.
    """
    buffer = io.BytesIO()
    try:
        schemaless_writer(buffer, schema, to_plain(type(thing))(thing), strict=True)
    except (TypeError, ValueError, OverflowError, KeyError, AttributeError) as error:
        raise Malformed(f"{type(thing).__name__}: {error}") from error
    return buffer.getvalue()


def encode_newest(thing: Any) -> bytes:  # noqa: ANN401 - any dataclass
    """The Avro body of a dataclass under the schema of its class. Raises `Malformed`.

    The same bytes as `encode` gives, sooner. Equal things have equal bytes.
    """
    try:
        return writer_of(type(thing))(thing)
    except (TypeError, ValueError, KeyError, OverflowError, AttributeError) as error:
        raise Malformed(f"{type(thing).__name__}: {error}") from error


def decode(written: Any, record: type[T], body: bytes, read: Any = None) -> T:  # noqa: ANN401
    """The dataclass that a body holds, written by one schema and read by the newest.

    Raises `Malformed` when the body is cut, has bytes too many, or holds an unknown value.
    """
    buffer = io.BytesIO(body)
    try:
        values = schemaless_reader(buffer, written, read)
        thing: T = from_plain(record)(values)
    except (EOFError, TypeError, ValueError, IndexError, KeyError, OverflowError) as error:
        raise Malformed(f"{record.__name__}: {error or type(error).__name__}") from error
    if buffer.tell() != len(body):
        raise Malformed(f"{record.__name__}: {len(body) - buffer.tell()} bytes too many")
    return thing


def to_plain(record: type[Any]) -> Plain:
    """A function from instances of a dataclass to what fastavro writes."""
    function = _TO_PLAIN.get(record)
    if function is None:
        function = _TO_PLAIN[record] = _write_to_plain(record)
    return function


def from_plain(record: type[Any]) -> Plain:
    """A function from what fastavro reads to instances of a dataclass."""
    function = _FROM_PLAIN.get(record)
    if function is None:
        function = _FROM_PLAIN[record] = _write_from_plain(record)
    return function


def _write_to_plain(record: type[Any]) -> Plain:
    scope: dict[str, Any] = {}
    parts = [
        f"{name!r}: {_outward(annotation, f'x.{name}', scope)}"
        for name, annotation in hints_of(record).items()
    ]
    return _compile(f"lambda x: {{{', '.join(parts)}}}", scope)


def _write_from_plain(record: type[Any]) -> Plain:
    scope: dict[str, Any] = {"record": record}
    parts = [
        _inward(annotation, f"v[{name!r}]", scope) for name, annotation in hints_of(record).items()
    ]
    return _compile(f"lambda v: record({', '.join(parts)})", scope)


def _compile(source: str, scope: Mapping[str, Any]) -> Plain:
    """Source of our own making, from the names of our own fields, becomes a function."""
    function: Plain = eval(source, dict(scope))  # noqa: S307 - no word of it comes from outside
    return function


def _outward(annotation: Any, value: str, scope: dict[str, Any]) -> str:  # noqa: ANN401
    inner = optional(annotation)
    if inner is not None:
        return f"(None if {value} is None else {_outward(inner, value, scope)})"
    item = element(annotation)
    if item is not None:
        each = _outward(item, "i", scope)
        return f"list({value})" if each == "i" else f"[{each} for i in {value}]"
    if is_map(annotation):
        return f"dict(sorted({value}.items()))"
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        scope[f"to_{annotation.__name__}"] = to_plain(annotation)
        return f"to_{annotation.__name__}({value})"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return f"{value}.value"
    if annotation is int:
        scope["whole"] = operator.index
        return f"whole({value})"
    return value


def _inward(annotation: Any, value: str, scope: dict[str, Any]) -> str:  # noqa: ANN401
    inner = optional(annotation)
    if inner is not None:
        return f"(None if {value} is None else {_inward(inner, value, scope)})"
    item = element(annotation)
    if item is not None:
        each = _inward(item, "i", scope)
        return f"tuple({value})" if each == "i" else f"tuple([{each} for i in {value}])"
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        scope[f"from_{annotation.__name__}"] = from_plain(annotation)
        return f"from_{annotation.__name__}({value})"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        scope[annotation.__name__] = annotation
        return f"{annotation.__name__}({value})"
    return value

"""The quick way from a dataclass to its Avro body: one function per class, without fastavro.

It writes what the schema of `shapes.schema_of` says, byte for byte as fastavro would; a test holds
the two against each other for every contract. fastavro takes 1.7 times as long.
"""

import dataclasses
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from schemas.shapes import element, hints_of, is_map, optional

Writer = Callable[[Any], bytes]

_WRITERS: dict[type[Any], Writer] = {}
_SMALL = tuple(bytes((number,)) for number in range(128))
_SIZES = _SMALL[::2]
"""Lengths and counts up to 63, as longs."""


def writer_of(record: type[Any]) -> Writer:
    """A function from instances of a dataclass to their bodies.

    It raises TypeError, ValueError, KeyError, OverflowError or AttributeError for what does not fit.
    """
    function = _WRITERS.get(record)
    if function is None:
        function = _WRITERS[record] = _write(record)
    return function


def long(number: int) -> bytes:
    """A long: zigzag, seven bits a byte, lowest first. Raises OverflowError beyond 64 bits."""
    number = number << 1 ^ number >> 63
    if number < 128:
        return _SMALL[number]
    if number < 16_384:
        return bytes((number & 127 | 128, number >> 7))
    if 1 << 49 <= number < 1 << 56:
        return _instant(number)
    if number >= 1 << 64:
        raise OverflowError("a number beyond 64 bits")
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _instant(number: int) -> bytes:
    """Eight groups at once: what the microseconds from 1979 to 3111 take, once zigzag."""
    return bytes(
        (
            number & 127 | 128,
            number >> 7 & 127 | 128,
            number >> 14 & 127 | 128,
            number >> 21 & 127 | 128,
            number >> 28 & 127 | 128,
            number >> 35 & 127 | 128,
            number >> 42 & 127 | 128,
            number >> 49,
        )
    )


def text(value: str) -> bytes:
    """A string: its length in bytes, then UTF-8."""
    raw = value.encode()
    size = len(raw)
    return (_SIZES[size] if size < 64 else long(size)) + raw


def octets(value: bytes) -> bytes:
    """Bytes: their length, then they."""
    return long(len(value)) + value


def truth(value: bool) -> bytes:  # noqa: FBT001 - the value itself
    """A boolean: one byte."""
    if value is True:
        return b"\1"
    if value is False:
        return b"\0"
    raise TypeError("a boolean is True or False")


def texts(values: Mapping[str, str]) -> bytes:
    """A map: the count and the entries in the order of their keys, then a zero."""
    if not values:
        return b"\0"
    parts = [text(name) + text(value) for name, value in sorted(values.items())]
    return long(len(parts)) + b"".join(parts) + b"\0"


def items(parts: list[bytes]) -> bytes:
    """An array: the count and the items, then a zero."""
    if not parts:
        return b"\0"
    return long(len(parts)) + b"".join(parts) + b"\0"


_PRIMITIVES: dict[Any, str] = {str: "text", int: "long", bool: "truth", bytes: "octets"}


def _write(record: type[Any]) -> Writer:
    scope: dict[str, Any] = {
        function.__name__: function for function in (long, text, octets, truth, texts, items)
    }
    source = f"lambda x: {_joined(_parts(record, 'x', scope))}"
    function: Writer = eval(source, scope)  # noqa: S307 - no word of it comes from outside
    return function


def _joined(parts: list[str]) -> str:
    """One expression for several that follow each other."""
    return parts[0] if len(parts) == 1 else f"b''.join(({', '.join(parts)}))"


def _parts(annotation: Any, value: str, scope: dict[str, Any]) -> list[str]:  # noqa: ANN401
    """Expressions whose bytes, one after the other, are a value's; records lie flat in them."""
    inner = optional(annotation)
    if inner is not None:
        some = _joined(_parts(inner, value, scope))
        return [f"(b'\\0' if {value} is None else b'\\2' + {some})"]
    item = element(annotation)
    if item is not None:
        return [f"items([{_joined(_parts(item, 'i', scope))} for i in {value}])"]
    if is_map(annotation):
        return [f"texts({value})"]
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        return [
            part
            for name, inside in hints_of(annotation).items()
            for part in _parts(inside, f"{value}.{name}", scope)
        ] or ["b''"]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        words = f"words_{annotation.__name__}"
        scope[words] = {member.value: text(member.value) for member in annotation}
        return [f"{words}[{value}._value_]"]
    return [f"{_PRIMITIVES[annotation]}({value})"]

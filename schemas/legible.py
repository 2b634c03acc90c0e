"""Whether every text inside a command is made of printable characters.

PostgreSQL holds no NUL in a text and UTF-8 no half of a surrogate pair: a fact with either would
stop every reader that writes it down, for ever, since a fact cannot be taken back.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from schemas.shapes import element, hints_of, is_map, optional

_TEXTS: dict[type[Any], Callable[[Any], str]] = {}


def is_legible(thing: Any) -> bool:  # noqa: ANN401 - any dataclass
    """Whether all texts of a dataclass, and of what is inside it, are printable."""
    texts = _TEXTS.get(type(thing))
    if texts is None:
        texts = _TEXTS[type(thing)] = _texts_of(type(thing))
    return texts(thing).isprintable()


def _texts_of(record: type[Any]) -> Callable[[Any], str]:
    source = f"lambda x: ''.join(({''.join(_parts(record, 'x'))}))"
    function: Callable[[Any], str] = eval(source)  # noqa: S307 - no word of it comes from outside
    return function


def _parts(annotation: Any, value: str) -> list[str]:  # noqa: ANN401 - annotations are of any kind
    """Members of a tuple of texts, each with its comma."""
    inner = optional(annotation)
    if inner is not None:
        some = "".join(_parts(inner, value))
        return [f"*(() if {value} is None else ({some})),"] if some else []
    item = element(annotation)
    if item is not None:
        each = "".join(_parts(item, "i"))
        return [f"*[t for i in {value} for t in ({each})],"] if each else []
    if is_map(annotation):
        return [f"*{value}, *{value}.values(),"]
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        hints = hints_of(annotation).items()
        return [part for name, inside in hints for part in _parts(inside, f"{value}.{name}")]
    return [f"{value},"] if annotation is str else []

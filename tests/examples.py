"""One example of each fact and command, made from its annotations: the same one every time."""

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

from hypothesis import strategies as st

from domain.commands import COMMANDS
from domain.facts import FACTS
from domain.messages import MESSAGES
from schemas.shapes import element, hints_of, is_map, optional

T = TypeVar("T")

RECORDS: Mapping[str, type[Any]] = {**FACTS, **COMMANDS, **MESSAGES}

LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)


def example(record: type[T]) -> T:
    """An instance whose every field says which one it is, by its place and its name."""
    values = {
        name: _example(annotation, name, place)
        for place, (name, annotation) in enumerate(hints_of(record).items(), 1)
    }
    return record(**values)


def _example(annotation: Any, name: str, place: int) -> Any:
    inner = optional(annotation)
    if inner is not None:
        return _example(inner, name, place)
    item = element(annotation)
    if item is not None:
        return (_example(item, f"{name}-a", place), _example(item, f"{name}-b", place + 1))
    if is_map(annotation):
        return {"a": f"{name}-1", "b": f"{name}-2"}
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        return example(annotation)
    if issubclass(annotation, Enum):
        return list(annotation)[place % len(annotation)]
    return {
        str: name,
        bytes: name.encode(),
        bool: place % 2 == 1,
        int: place * 1_000_003 if place % 2 else -place,
    }[annotation]


def examples(record: type[T]) -> st.SearchStrategy[T]:
    """Any instances of a dataclass, valid for its schema though not for the domain's rules."""
    return st.builds(record, **{n: _examples(a) for n, a in hints_of(record).items()})


def _examples(annotation: Any) -> st.SearchStrategy[Any]:
    inner = optional(annotation)
    if inner is not None:
        return st.none() | _examples(inner)
    item = element(annotation)
    if item is not None:
        return st.lists(_examples(item), max_size=3).map(tuple)
    if is_map(annotation):
        return st.dictionaries(TEXTS, TEXTS, max_size=3)
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        return examples(annotation)
    if issubclass(annotation, Enum):
        return st.sampled_from(annotation)
    kinds: dict[Any, st.SearchStrategy[Any]] = {
        str: TEXTS,
        bytes: st.binary(max_size=20),
        bool: st.booleans(),
        int: LONGS,
    }
    return kinds[annotation]

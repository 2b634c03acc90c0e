"""Changes of state that can be taken back, for a batch whose commit fails."""

from collections.abc import Callable
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Undo:
    """Every change of state goes through here and leaves its inverse behind, newest last."""

    __slots__ = ("_inverses",)

    def __init__(self) -> None:
        """Begin with nothing to take back."""
        self._inverses: list[tuple[Callable[..., object], tuple[Any, ...]]] = []

    def mark(self) -> int:
        """The present position, to come back to."""
        return len(self._inverses)

    def back_to(self, mark: int) -> None:
        """Take back everything since a mark, newest first."""
        inverses = self._inverses
        while len(inverses) > mark:
            inverse, arguments = inverses.pop()
            inverse(*arguments)

    def forget(self) -> None:
        """What happened so far is durable and will not be taken back."""
        self._inverses.clear()

    def add(self, inverse: Callable[..., object], *arguments: Any) -> None:  # noqa: ANN401 - any call
        """Remember the inverse of a change that the caller made."""
        self._inverses.append((inverse, arguments))

    def set(self, thing: object, name: str, value: object) -> None:
        """Set an attribute."""
        self._inverses.append((setattr, (thing, name, getattr(thing, name))))
        setattr(thing, name, value)

    def put(self, table: dict[K, V], key: K, value: V) -> None:
        """Set an entry of a table."""
        if key in table:
            self._inverses.append((table.__setitem__, (key, table[key])))
        else:
            self._inverses.append((table.pop, (key,)))
        table[key] = value

    def drop(self, table: dict[K, V], key: K) -> V:
        """Take an entry out of a table."""
        value = table.pop(key)
        self._inverses.append((table.__setitem__, (key, value)))
        return value

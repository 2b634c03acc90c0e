"""The port of ingress's memory: up to where commands were decided, and up to where answered."""

from collections.abc import Mapping
from typing import Protocol


class IngressPlaces(Protocol):
    """Offsets per partition of the commands' topic, of one shard."""

    def decided(self, topic: str) -> Mapping[int, int]:
        """The last offset that the ledger took in, written by the very commit that decided it."""
        ...

    def answered(self, topic: str) -> Mapping[int, int]:
        """The last offset whose outcome is known to be published."""
        ...

    def answer(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Keep up to where outcomes are published."""
        ...

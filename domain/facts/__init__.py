"""Facts: what happened, in the past tense, immutable, one class each."""

from types import ModuleType

from domain.facts import (
    billing,
    environment,
    hardware,
    level,
    node,
    plan,
    pool,
    quota,
    request,
    reservation,
    shard,
    tenant,
)
from domain.facts.fact import Fact


def _facts_of(module: ModuleType) -> dict[str, type[Fact]]:
    """The fact classes that a module defines, by name."""
    return {
        name: thing
        for name, thing in vars(module).items()
        if isinstance(thing, type)
        and thing.__module__ == module.__name__
        and hasattr(thing, "stream")
        and hasattr(thing, "__dataclass_fields__")
    }


FACTS: dict[str, type[Fact]] = {
    name: fact
    for module in (
        pool,
        level,
        node,
        hardware,
        tenant,
        quota,
        reservation,
        environment,
        request,
        plan,
        shard,
        billing,
    )
    for name, fact in _facts_of(module).items()
}
"""Every fact that the ledger knows, by the name that its schema bears."""

__all__ = ["FACTS", "Fact"]

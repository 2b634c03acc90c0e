"""A fact in a few words: what, and of whom."""

from domain.facts.fact import Fact

_TOLD = (
    "tenant_id",
    "node_id",
    "slots",
    "klass",
    "reason",
    "cause",
    "state",
    "short_milli",
    "milli",
)


def worded(fact: Fact) -> str:
    """Its name, and those of its fields that tell who and why."""
    told = ", ".join(
        f"{name.removesuffix('_id')} {value}"
        for name in _TOLD
        if (value := getattr(fact, name, None)) not in {None, "", ()}
    )
    return f"{type(fact).__name__} ({told})" if told else type(fact).__name__

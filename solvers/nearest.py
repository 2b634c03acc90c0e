"""What would be a yes instead: later, fewer, another model, another topology, another class."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from domain.decide.transcript import Transcript
from domain.sizes import ReservationClass, Size
from domain.timespan import Instant, Timespan
from solvers.trial import Want, fits, shortfall

STARTS_TRIED_MAX = 256
"""Ends of what is held at which a later start is tried."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """One change of a want that gets a yes, tried; `change` says which."""

    change: str
    want: Want


def nearest(t: Transcript, want: Want) -> tuple[Nearest, ...]:
    """The yes of each kind that is nearest, where there is one; each was tried."""
    found: list[Nearest] = []
    for search in (later, _fewer, _other_model, _other_topology, _other_class):
        changed = search(t, want)
        if changed is not None:
            found.append(Nearest(search.__name__.removeprefix("_").replace("_", "-"), changed))
    return tuple(found)


def is_yes(t: Transcript, want: Want) -> bool:
    """Whether quota and units allow it."""
    return shortfall(t, want) is None and fits(t, want)


def later(t: Transcript, want: Want) -> Want | None:
    """The first end of something held, or of a quota's shortage, from which it fits."""
    nodes = (t.ledger.nodes[node_id] for node_id in want.pool.nodes)
    ends = {
        end
        for node in nodes
        for lane in node.lanes.by_run.values()
        for end in lane.ends
        if end > want.span.start
    }
    for account in t.ledger.chain(want.tenant_id, want.pool.id):
        ends |= {grant.start for grant in account.grants.values() if grant.start > want.span.start}
    length = want.span.microseconds
    for start in sorted(ends)[:STARTS_TRIED_MAX]:
        later = replace(want, span=Timespan(Instant(start), Instant(start + length)))
        if is_yes(t, later):
            return later
    return None


def _fewer(t: Transcript, want: Want) -> Want | None:
    """The largest smaller size of the same kind that halving finds."""
    size = want.size
    if size.share_milli:
        return _largest(t, want, size.share_milli, lambda n: Size(share_milli=n))
    if size.gpus and not size.nodes:
        return _largest(t, want, size.gpus, lambda n: Size(gpus=n))
    return _largest(t, want, size.nodes, lambda n: Size(nodes=n))


def _largest(t: Transcript, want: Want, most: int, sized: Callable[[int], Size]) -> Want | None:
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        if is_yes(t, replace(want, size=sized(middle))):
            low = middle
        else:
            high = middle
    return replace(want, size=sized(low)) if low else None


def _other_model(t: Transcript, want: Want) -> Want | None:
    """The first other model, by name, on which it fits as it is."""
    if not want.shape.models:
        return None
    for model in sorted({model for model, _ in want.pool.kinds} - set(want.shape.models)):
        changed = replace(want, shape=replace(want.shape, models=(model,)))
        if is_yes(t, changed):
            return changed
    return None


def _other_topology(t: Transcript, want: Want) -> Want | None:
    """The next wider level in one group of which it fits, or no level at all."""
    level = want.shape.same_level
    if level is None:
        return None
    for wider in (*_wider(t, want, level), None):
        changed = replace(want, shape=replace(want.shape, same_level=wider))
        if is_yes(t, changed):
            return changed
    return None


def _wider(t: Transcript, want: Want, level: str) -> Iterator[str]:
    """The levels above one, nearest first: a node's levels are listed from the outside in."""
    for node in (t.ledger.nodes[node_id] for node_id in want.pool.nodes):
        names = [name for name, _ in node.levels]
        if level in names:
            yield from reversed(names[: names.index(level)])
            return


def _other_class(t: Transcript, want: Want) -> Want | None:
    """Borrowed, where only the guaranteed quota is short and the pool lends."""
    if want.klass is not ReservationClass.GUARANTEED or not want.pool.policy.borrowing:
        return None
    changed = replace(want, klass=ReservationClass.BORROWED)
    return changed if shortfall(t, want) is not None and is_yes(t, changed) else None

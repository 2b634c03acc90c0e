"""Why here, why not: a want against the fleet as it stands, each rule looked at by itself.

Everything is tried on a copy by the rules that decide, so an explanation cannot say anything
that a decision would contradict at the same position of the log.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from domain.decide.placing import find_units
from domain.decide.transcript import Transcript
from domain.fleet_state import Node
from domain.refusals import Asked
from domain.reservation import Reservation
from domain.timespan import Timespan
from domain.units import MILLI_PER_GPU, Segment
from solvers.nearest import Nearest, nearest
from solvers.obstacles import Obstacle, obstacles, suits
from solvers.trial import Copy, Want, fits, lift, open_all, shortfall, trial


@dataclass(frozen=True, slots=True)
class Limit:
    """A rule that stands in the way; `alone` when lifting it by itself would be enough."""

    rule: str
    alone: bool
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Seen:
    """One node as a want sees it: `here`, `fits`, or the first thing that speaks against it."""

    node_id: str
    verdict: str
    free_gpus: int
    """GPUs that nobody holds at any instant of the wanted span."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """An answer with its reasons, as things stand at one position of the log."""

    want: Want
    seq: int
    fits: bool
    """Whether there are units and quota for it now; its own units, if it has any, counted free."""
    here: tuple[str, ...]
    """The nodes where it sits."""
    again: tuple[str, ...]
    """The nodes where it would be put now, by the same rule."""
    limits: tuple[Limit, ...]
    in_the_way: tuple[Obstacle, ...]
    is_enough: bool
    """Whether it would fit if those were gone; tried, not reckoned."""
    nodes: tuple[Seen, ...]
    nearest: tuple[Nearest, ...]

    @property
    def verdicts(self) -> dict[str, int]:
        """How many nodes have each verdict."""
        return dict(sorted(Counter(seen.verdict for seen in self.nodes).items()))


def want_of(copy: Copy, subject: Reservation | Asked) -> Want | None:
    """What a reservation, or a request that got a no, wants; None where its pool is gone."""
    pool = copy.ledger.pools.get(subject.pool_id)
    if pool is None or subject.tenant_id not in copy.ledger.tenants:
        return None
    span = Timespan(subject.start, subject.end)
    return Want(subject.tenant_id, pool, subject.klass, subject.size, subject.shape, span)


def explain(copy: Copy, want: Want, placed: Reservation | None = None) -> Explanation:
    """Look at a want; `placed` is the reservation that it already is, if it has its units."""
    with trial(copy) as t:
        here: tuple[str, ...] = ()
        if placed is not None:
            here = tuple(sorted({h.piece.node_id for h in placed.holdings}))
            lift(t, placed)
        segments = find_units(t, want.ask)
        short = None if placed is not None else shortfall(t, want)
        is_there = segments is not None and short is None
        limits = () if is_there else tuple(_limits(t, want, found=segments is not None))
        way, enough = ((), True) if segments is not None else obstacles(t, want)
        return Explanation(
            want,
            copy.seq,
            is_there,
            here,
            _nodes_of(segments or ()),
            limits,
            way,
            enough,
            tuple(_seen(t, want, here)),
            () if is_there else nearest(t, want),
        )


def _nodes_of(segments: tuple[Segment, ...]) -> tuple[str, ...]:
    return tuple(sorted({piece.node_id for each in segments for piece in each.pieces}))


def _limits(t: Transcript, want: Want, *, found: bool) -> Iterator[Limit]:
    """The rules that say no, in the order of their precedence."""
    short = shortfall(t, want)
    if short is not None:
        facts = {
            "tenant_id": short.tenant_id,
            "limit_milli": str(short.limit_milli),
            "left_milli": str(short.left_milli),
            "asked_milli": str(want.milli),
            "at": str(short.at),
        }
        yield Limit("quota", found, facts)
    if found:
        return
    enough_quota = short is None
    lifted = [
        Limit(rule, enough_quota, facts)
        for rule, changed, facts in _without(want)
        if fits(t, changed)
    ]
    lifted += [Limit(rule, enough_quota, facts) for rule, facts in _opened(t, want)]
    at, free = t.placer.tightest(want.ask.reach, pool=want.pool.number, models=want.shape.models)
    if not lifted or free * MILLI_PER_GPU < want.milli:
        facts = {"at": str(at), "free_milli": str(free * MILLI_PER_GPU)}
        yield Limit("capacity", enough_quota, facts | {"asked_milli": str(want.milli)})
    yield from lifted


def _without(want: Want) -> Iterator[tuple[str, Want, dict[str, str]]]:
    """The same want without one of the rules of its shape."""
    shape = want.shape
    if shape.models:
        told = {"models": ", ".join(shape.models)}
        yield "model", replace(want, shape=replace(shape, models=())), told
    if shape.labels:
        told = {"labels": ", ".join(f"{k}={v}" for k, v in sorted(shape.labels.items()))}
        yield "labels", replace(want, shape=replace(shape, labels={})), told
    if shape.same_level:
        told = {"level": shape.same_level}
        yield "topology", replace(want, shape=replace(shape, same_level=None)), told


def _opened(t: Transcript, want: Want) -> Iterator[tuple[str, dict[str, str]]]:
    """Maintenance and what is out of service, each lifted by itself."""
    planned = [
        each
        for each in sorted(t.ledger.maintenances.values(), key=lambda m: m.id)
        if each.pool_id == want.pool.id and each.span.overlaps(want.ask.reach)
    ]
    mark = t.mark()
    for each in planned:
        lift(t, each)
    if planned and fits(t, want):
        yield "maintenance", {"planned": str(len(planned)), "end": str(max(p.end for p in planned))}
    t.back_to(mark)
    shut = [node for n in want.pool.nodes if _is_shut(node := t.ledger.nodes[n])]
    open_all(t, want.pool)
    if shut and fits(t, want):
        yield "out-of-service", {"nodes": str(len(shut))}
    t.back_to(mark)


def _is_shut(node: Node) -> bool:
    return not node.is_bookable or bool(node.failed_slots)


def _seen(t: Transcript, want: Want, here: tuple[str, ...]) -> Iterator[Seen]:
    """Every node of the pool, and what the want finds there."""
    parts, reach = want.ask.parts, want.ask.reach
    for node in sorted((t.ledger.nodes[n] for n in want.pool.nodes), key=lambda n: n.id):
        held = {
            slot
            for first, end, _, _, _ in node.lanes.held(
                0, node.gpus * MILLI_PER_GPU, reach.start, reach.end
            )
            for slot in range(first // MILLI_PER_GPU, -(-end // MILLI_PER_GPU))
        }
        free = sum(slot not in held and slot not in node.failed_slots for slot in range(node.gpus))
        enough = node.gpus if parts.nodes else max(1, parts.gpus)
        yield Seen(node.id, _verdict(node, want, here, free >= enough), free)


def _verdict(node: Node, want: Want, here: tuple[str, ...], is_free: bool) -> str:  # noqa: FBT001
    if node.id in here:
        return "here"
    if not node.is_bookable:
        return node.state.value
    if want.shape.models and node.model not in want.shape.models:
        return "another model"
    if not suits(node, want):
        return "other labels"
    if want.shape.same_level and node.group(want.shape.same_level) is None:
        return f"in no {want.shape.same_level}"
    return "fits" if is_free else "held"

"""From an ask to concrete units: the placer proposes, the truth of each node disposes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from domain.decide.transcript import Transcript
from domain.fleet_state import Node, Pool
from domain.ids import TenantId
from domain.lanes import Lanes
from domain.sizes import Parts, Shape
from domain.timespan import Instant, Timespan, seconds
from domain.units import MILLI_PER_GPU, Piece, Segment, pieces_of_mask

CANDIDATES_MAX = 64
"""How many proposals of the placer are looked at before an ask is given up."""


class IndexOutOfStep(Exception):
    """The placer's index and the truth disagree: a fault of ours, never a caller's."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Units wanted in a pool over a span, by a tenant, like a shape."""

    pool: Pool
    tenant_id: TenantId
    parts: Parts
    shape: Shape
    span: Timespan
    without: tuple[int, ...] = ()
    """Nodes that will not do."""
    among: tuple[int, ...] | None = None
    """The only nodes that will do, if any is named."""

    @property
    def reach(self) -> Timespan:
        """The span with the gap that is left for cleaning."""
        gap = seconds(self.pool.policy.gap_seconds)
        return Timespan(self.span.start, Instant(self.span.end + gap))


def find_units(t: Transcript, ask: Ask) -> tuple[Segment, ...] | None:
    """Units that are free throughout, or None, which is a proof that there are none."""
    ask = replace(ask, among=_eligible(t, ask))
    if ask.parts.share_milli:
        return _find_share(t, ask)
    without = list(ask.without)
    for _ in range(CANDIDATES_MAX):
        nodes = _find_nodes(t, ask, without)
        if nodes is None:
            return None
        pieces = tuple(node.piece for node in nodes)
        if not ask.parts.gpus:
            return (Segment(ask.span.start, ask.span.end, pieces),)
        rest = _find_gpus(t, ask, nodes)
        if rest is not None:
            return (Segment(ask.span.start, ask.span.end, pieces + rest),)
        if not ask.parts.nodes or not ask.shape.same_level:
            return None
        without += _group(t, nodes[0], ask.shape.same_level)
    return None


def fits_with(t: Transcript, piece: Piece, reach: Timespan) -> bool:
    """Whether a piece is free over a span, by the truth."""
    lanes = t.ledger.nodes[piece.node_id].lanes
    return lanes.conflict(piece.first_milli, piece.end_milli, reach.start, reach.end) is None


def _eligible(t: Transcript, ask: Ask) -> tuple[int, ...] | None:
    """The nodes whose labels are right, or None when any will do."""
    if not ask.shape.labels:
        return ask.among
    wanted = ask.shape.labels.items()
    nodes = (t.ledger.nodes[node_id] for node_id in ask.pool.nodes)
    right = (node.index for node in nodes if wanted <= node.labels.items())
    return tuple(index for index in right if ask.among is None or index in ask.among)


def _find_nodes(t: Transcript, ask: Ask, without: Sequence[int]) -> tuple[Node, ...] | None:
    """The whole nodes of an ask, checked against the truth."""
    if not ask.parts.nodes:
        return ()
    found = t.placer.find_nodes(
        ask.parts.nodes,
        ask.reach,
        pool=ask.pool.number,
        node_gpus=ask.parts.node_gpus,
        models=ask.shape.models,
        level=ask.shape.same_level,
        among=ask.among,
        without=without,
    )
    if found is None:
        return None
    nodes = tuple(t.ledger.node_order[index] for index in found)
    for node in nodes:
        _must_be_free(t, node.piece, ask.reach)
    return nodes


def _find_gpus(t: Transcript, ask: Ask, nodes: tuple[Node, ...]) -> tuple[Piece, ...] | None:
    """The remainder of an ask on one further node, checked against the truth."""
    among = ask.among
    level = ask.shape.same_level
    if nodes and level:
        group = _group(t, nodes[0], level)
        among = tuple(index for index in group if among is None or index in among)
    found = t.placer.find_gpus(
        ask.parts.gpus,
        ask.reach,
        pool=ask.pool.number,
        models=ask.shape.models,
        among=among,
        without=(*ask.without, *(node.index for node in nodes)),
    )
    if found is None:
        return None
    index, mask = found
    pieces = tuple(pieces_of_mask(t.ledger.node_order[index].id, mask))
    for piece in pieces:
        _must_be_free(t, piece, ask.reach)
    return pieces


def _find_share(t: Transcript, ask: Ask) -> tuple[Segment, ...] | None:
    """A share of one GPU, carved out of what its other holders leave free."""
    found = t.placer.find_share(
        ask.parts.share_milli,
        ask.reach,
        pool=ask.pool.number,
        owner=ask.tenant_id,
        models=ask.shape.models,
        among=ask.among,
        without=ask.without,
    )
    if found is None:
        return None
    index, slot = found
    node = t.ledger.node_order[index]
    segments = carve(node, slot, ask.reach, ask.parts.share_milli)
    if segments is None:
        raise IndexOutOfStep(node.id, slot)
    return tuple(
        Segment(segment.start, min(segment.end, ask.span.end), segment.pieces)
        for segment in segments
        if segment.start < ask.span.end
    )


def _must_be_free(t: Transcript, piece: Piece, reach: Timespan) -> None:
    node = t.ledger.nodes[piece.node_id]
    is_open = node.is_bookable and not node.failed_slots.intersection(piece.slots)
    if not is_open or not fits_with(t, piece, reach):
        raise IndexOutOfStep(piece)


def _group(t: Transcript, node: Node, level: str) -> tuple[int, ...]:
    """The nodes that sit in the same group of a level."""
    group = node.group(level)
    nodes = (t.ledger.nodes[other] for other in t.ledger.pools[node.pool_id].nodes)
    return tuple(other.index for other in nodes if other.group(level) == group)


def carve(node: Node, slot: int, span: Timespan, width_milli: int) -> tuple[Segment, ...] | None:
    """Pieces of one GPU that sum to a width at each instant of a span, in the fewest segments.

    Shares of a GPU are fungible, so it is enough that the width is free at each instant;
    where no run is free throughout, the pieces are renumbered at a segment's border.
    """
    segments: list[Segment] = []
    start = span.start
    while start < span.end:
        free, end = _longest_free(node.lanes, slot, Timespan(start, span.end), width_milli)
        if end <= start:
            return None
        segments.append(Segment(start, end, tuple(_first_milli(node, free, width_milli))))
        start = end
    return tuple(segments)


def _longest_free(
    lanes: Lanes, slot: int, span: Timespan, width_milli: int
) -> tuple[list[tuple[int, int]], Instant]:
    """The runs free from a span's start on that still hold a width, and how long they are."""
    low, high = slot * MILLI_PER_GPU, (slot + 1) * MILLI_PER_GPU
    free = [(low, high)]
    held = sorted(lanes.held(low, high, span.start, span.end), key=lambda run: run[2])
    for first, end_milli, start, _, _ in held:
        rest = list(_minus(free, first, end_milli))
        if sum(end - begin for begin, end in rest) < width_milli:
            return free, max(start, span.start)
        free = rest
    return free, span.end


def _minus(runs: list[tuple[int, int]], first: int, end_milli: int) -> Iterator[tuple[int, int]]:
    for low, high in runs:
        if low < min(high, first):
            yield low, min(high, first)
        if max(low, end_milli) < high:
            yield max(low, end_milli), high


def _first_milli(node: Node, runs: list[tuple[int, int]], width_milli: int) -> Iterator[Piece]:
    for low, high in runs:
        taken = min(width_milli, high - low)
        if taken:
            yield Piece(node.id, low, taken)
        width_milli -= taken

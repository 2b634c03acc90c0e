"""The checker that distrusts plans: it shares no code with any search, and names each fault."""

from collections.abc import Iterable, Mapping

from domain.ids import ReservationId
from domain.snapshot import PlanAnswer, PlanAsk, PlanNode, PlanProblem
from domain.units import Piece

MILLI = 1000


def faults(problem: PlanProblem, placed: Mapping[ReservationId, tuple[Piece, ...]]) -> list[str]:
    """What is wrong with a plan that puts reservations on pieces; nothing when it is sound.

    Movable reservations that a plan does not name stay where they are.
    """
    asks = {ask.id: ask for ask in (*problem.movable, *problem.waiting)}
    found = [f"{name} is no reservation of this problem" for name in placed if name not in asks]
    whole = {ask.id: ask.at for ask in problem.movable} | dict(placed)
    for name, pieces in whole.items():
        if name in asks:
            found += _misfits(problem, asks[name], pieces)
    found += _overlaps(problem, asks, whole)
    return found


def answer_faults(problem: PlanProblem, answer: PlanAnswer) -> list[str]:
    """What is wrong with a whole answer: who is moved, admitted, refused, and to where."""
    movable = {ask.id for ask in problem.movable}
    waiting = {ask.id for ask in problem.waiting}
    admitted, refused = set(answer.admitted), set(answer.refused)
    found = [f"{name} may not be moved" for name in answer.moves if name not in movable]
    found += [f"{name} does not wait" for name in (admitted | refused) - waiting]
    found += [f"{name} is admitted and refused" for name in admitted & refused]
    found += [f"{name} is not answered" for name in waiting - admitted - refused]
    return found or faults(problem, {**answer.moves, **answer.admitted})


def _misfits(problem: PlanProblem, ask: PlanAsk, pieces: tuple[Piece, ...]) -> Iterable[str]:
    """Wrong nodes, wrong GPUs, wrong sizes of one reservation."""
    nodes: dict[str, PlanNode] = {node.id: node for node in problem.nodes}
    per_node: dict[str, int] = {}
    for piece in pieces:
        node = nodes.get(piece.node_id)
        if node is None:
            yield f"{ask.id} sits on {piece.node_id}, which takes no holder"
            continue
        first, end = piece.first_milli, piece.first_milli + piece.width_milli
        if first % MILLI or end % MILLI or first < 0 or end > node.gpus * MILLI or first >= end:
            yield f"{ask.id} has no whole GPUs of {node.id}"
        if any(slot not in node.open_slots for slot in range(first // MILLI, end // MILLI)):
            yield f"{ask.id} sits on a GPU of {node.id} that does not serve"
        if ask.shape.models and node.model not in ask.shape.models:
            yield f"{ask.id} sits on model {node.model}"
        if any(node.labels.get(key) != value for key, value in ask.shape.labels.items()):
            yield f"{ask.id} sits on {node.id}, whose labels are others"
        per_node[node.id] = per_node.get(node.id, 0) + end - first
    large = [n for n, held in per_node.items() if held == nodes[n].gpus * MILLI]
    if sum(nodes[n].gpus == ask.parts.node_gpus for n in large) < ask.parts.nodes:
        yield f"{ask.id} has too few whole nodes of {ask.parts.node_gpus} GPUs"
    wanted = [ask.parts.node_gpus * MILLI] * ask.parts.nodes
    if ask.parts.gpus:
        wanted.append(ask.parts.gpus * MILLI)
    if sorted(wanted) != sorted(per_node.values()):
        yield f"{ask.id} has {sorted(per_node.values())} on its nodes, not {sorted(wanted)}"
    if ask.shape.same_level:
        groups = {dict(nodes[n].levels).get(ask.shape.same_level) for n in per_node}
        if len(groups) > 1 or None in groups:
            yield f"{ask.id} is spread over {ask.shape.same_level}s"


def _overlaps(
    problem: PlanProblem,
    asks: Mapping[ReservationId, PlanAsk],
    placed: Mapping[ReservationId, tuple[Piece, ...]],
) -> list[str]:
    """A sweep over each node: whoever begins while another still holds a shared thousandth."""
    edges: dict[str, list[tuple[int, int, str, int, int]]] = {}

    def add(name: str, piece: Piece, start: int, end: int) -> None:
        low, high = piece.first_milli, piece.first_milli + piece.width_milli
        edges.setdefault(piece.node_id, []).append((start, 1, name, low, high))
        edges[piece.node_id].append((end, 0, name, low, high))

    for number, hold in enumerate(problem.fixed):
        add(f"fixed {number}", hold.piece, hold.start, hold.end)
    for placed_id, pieces in placed.items():
        if placed_id in asks:
            ask = asks[placed_id]
            for piece in pieces:
                add(ask.id, piece, ask.start, ask.end + problem.gap)
    found: list[str] = []
    for node_id, of_node in edges.items():
        held: list[tuple[str, int, int]] = []
        for _, begins, name, low, high in sorted(of_node):
            if not begins:
                held.remove((name, low, high))
                continue
            for other, first, end in held:
                both_fixed = name.startswith("fixed") and other.startswith("fixed")
                if low < end and first < high and not both_fixed:
                    found.append(f"{name} and {other} overlap on {node_id}")
            held.append((name, low, high))
    return found

"""An answer of the planner as the command that proposes it."""

from domain.commands.report import PlannedMove, PlannedRefusal, ProposePlan
from domain.ids import PlanId, ReservationId, derive
from domain.refusals import Reason
from domain.snapshot import PlanAnswer, PlanProblem
from domain.units import Piece, Segment

_NAMESPACE = bytes.fromhex("0f1a51d6b0b54a0e8ab35d7d0c7f2b11")


def proposal_of(problem: PlanProblem, answer: PlanAnswer) -> ProposePlan:
    """Who moves, who is admitted, and who is refused for good; its id derives from pool and seq."""
    asks = {ask.id: ask for ask in (*problem.movable, *problem.waiting)}

    def put(where: dict[ReservationId, tuple[Piece, ...]]) -> tuple[PlannedMove, ...]:
        return tuple(
            PlannedMove(asks[name].id, (Segment(asks[name].start, asks[name].end, pieces),))
            for name, pieces in sorted(where.items())
        )

    reason = Reason.CAPACITY if answer.is_proven else Reason.NOT_FOUND_IN_TIME
    refusals = tuple(
        PlannedRefusal(name, reason.code, dict(answer.evidence)) for name in answer.refused
    )
    return ProposePlan(
        PlanId(derive(_NAMESPACE, f"{problem.pool_id}/{problem.from_seq}")),
        problem.pool_id,
        problem.from_seq,
        put(answer.moves),
        put(answer.admitted),
        refusals,
        answer.evidence,
    )

"""Facts of plans: proposed by a solver, adopted or refused by the domain."""

from collections.abc import Mapping
from dataclasses import dataclass

from domain.ids import PlanId, PoolId, ReservationId


class OfPlan:
    """A fact of a plan."""

    __slots__ = ()
    plan_id: PlanId

    @property
    def stream(self) -> str:
        """The plan's stream."""
        return f"plan/{self.plan_id}"


@dataclass(frozen=True, slots=True)
class PlanProposed(OfPlan):
    """A solver offered moves and admissions, computed from one position of the log."""

    plan_id: PlanId
    pool_id: PoolId
    from_seq: int
    moves: int
    admitted: tuple[ReservationId, ...]
    refused: tuple[ReservationId, ...]
    evidence: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PlanAdopted(OfPlan):
    """A plan was checked again and put into force."""

    plan_id: PlanId
    pool_id: PoolId


@dataclass(frozen=True, slots=True)
class PlanRefused(OfPlan):
    """A plan was stale or broken, and nothing of it was done."""

    plan_id: PlanId
    pool_id: PoolId
    why: str

"""The account of one reservation: who did what, when, why, by which plan and under which quota."""

from dataclasses import dataclass, field

from domain.facts import plan, quota
from domain.facts.fact import Fact, OfReservation
from domain.facts.reservation import ReservationConfirmed, ReservationHeld, ReservationQueued
from domain.facts.tenant import TenantRegistered
from domain.ids import CommandId, PlanId, ReservationId, TenantId
from domain.record import Recorded
from domain.timespan import Instant


@dataclass(frozen=True, slots=True)
class Basis:
    """A grant that was in force when a reservation was decided, and the fact that says so."""

    seq: int
    grant: quota.QuotaGranted | quota.QuotaAmended


@dataclass(frozen=True, slots=True)
class Step:
    """One fact of the reservation, and what stands behind it."""

    entry: Recorded
    plan_id: PlanId | None
    plan_seq: int
    """The fact of the plan that came with it; 0 when none did."""
    quota: tuple[Basis, ...]
    """Of the tenant and all above it, where quota was decided on."""


@dataclass(slots=True)
class Account:
    """Folds a log into the account of one reservation. The rest of the log is passed over."""

    reservation_id: ReservationId
    steps: list[Step] = field(default_factory=list)
    _grants: dict[str, Basis] = field(default_factory=dict)
    _parents: dict[TenantId, TenantId | None] = field(default_factory=dict)
    _plan: tuple[CommandId | None, PlanId, int] | None = None

    def apply(self, entry: Recorded) -> None:
        """Take in one fact, in the order of the log."""
        fact = entry.fact
        match fact:
            case quota.QuotaGranted() | quota.QuotaAmended():
                self._grants[fact.grant_id] = Basis(entry.seq, fact)
            case quota.QuotaExpired():
                self._grants.pop(fact.grant_id, None)
            case TenantRegistered():
                self._parents[fact.tenant_id] = fact.parent_id
            case plan.PlanProposed() | plan.PlanAdopted():
                self._plan = (entry.command_id, fact.plan_id, entry.seq)
            case OfReservation() if fact.reservation_id == self.reservation_id:
                self.steps.append(self._step(entry, fact))
            case _:
                pass

    def _step(self, entry: Recorded, fact: Fact) -> Step:
        plan_id, plan_seq = None, 0
        if self._plan is not None and self._plan[0] == entry.command_id is not None:
            _, plan_id, plan_seq = self._plan
        basis: tuple[Basis, ...] = ()
        if isinstance(fact, ReservationConfirmed | ReservationHeld | ReservationQueued):
            basis = self._basis(fact.tenant_id, fact.pool_id, fact.start)
        return Step(entry, plan_id, plan_seq, basis)

    def _basis(self, tenant_id: TenantId, pool_id: str, at: Instant) -> tuple[Basis, ...]:
        """Grants of a tenant and of all above it that hold at an instant, nearest first."""
        found: list[Basis] = []
        above: TenantId | None = tenant_id
        while above is not None:
            found += [
                basis
                for basis in self._grants.values()
                if (basis.grant.tenant_id, basis.grant.pool_id) == (above, pool_id)
                and basis.grant.start <= at < basis.grant.end
            ]
            above = self._parents.get(above)
        return tuple(found)

"""What if: nodes lost, quota changed, a request added, by the rules that decide, on a copy.

What the facts come to is told as a difference: who moves from where to where, who is short, who
has to give way, who gets a place. Nothing of it is written anywhere.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from domain import commands as c
from domain.commands import Command
from domain.commands.node import Health
from domain.decide import decide
from domain.decide.transcript import Transcript
from domain.ids import CommandId, NodeId, PoolId, PrincipalId, ReservationId, TenantId, derive
from domain.principal import Principal, Role
from domain.quota import Grant
from domain.refusals import Refusal
from domain.reservation import Holding, Reservation
from domain.snapshot import PlanAnswer, PlanProblem, problem_of
from domain.states import OVER
from domain.timespan import FAR_FUTURE, Instant
from solvers.proposing import proposal_of
from solvers.trial import Copy, trial

Solve = Callable[[PlanProblem], PlanAnswer]

_OPERATOR = Principal(PrincipalId("what-if"), Role.OPERATOR)
_SERVICE = Principal(PrincipalId("what-if"), Role.SERVICE)


@dataclass(frozen=True, slots=True)
class Supposition:
    """What is supposed of a pool."""

    pool_id: PoolId
    lost: tuple[NodeId, ...] = ()
    quota: Mapping[TenantId, int] = field(default_factory=dict)
    """The nominal quota that a tenant would have from now on, in milli-GPU."""
    request: c.RequestReservation | None = None


@dataclass(frozen=True, slots=True)
class Stand:
    """How a reservation stands: its state, its units, and the most that it lacks."""

    tenant_id: TenantId
    klass: str
    state: str
    start: Instant
    end: Instant
    holdings: tuple[Holding, ...]
    short_milli: int

    @property
    def nodes(self) -> tuple[str, ...]:
        """Where it sits."""
        return tuple(sorted({holding.piece.node_id for holding in self.holdings}))


@dataclass(frozen=True, slots=True)
class Difference:
    """A reservation that would stand otherwise; None before when it is new, after when it is gone.

    `moved` are milli-GPU that it would hold elsewhere than now.
    """

    reservation_id: ReservationId
    before: Stand | None
    after: Stand | None
    moved_milli: int


@dataclass(frozen=True, slots=True)
class Over:
    """A tenant with more booked than its quota would allow: it keeps it, and gets nothing more."""

    tenant_id: TenantId
    nominal_milli: int
    booked_milli: int
    at: Instant


@dataclass(frozen=True, slots=True)
class Supposed:
    """What would come of it."""

    seq: int
    differences: tuple[Difference, ...]
    over: tuple[Over, ...]
    refusal: Refusal | None
    """Why the request would not be accepted, nor wait."""
    request_id: ReservationId | None
    plan: Mapping[str, str]
    """The evidence of the plan that was tried for what waits; empty where nothing does."""
    facts: Mapping[str, int]
    """How many facts of each kind would be written."""

    @property
    def moved(self) -> tuple[Difference, ...]:
        """Those that would sit elsewhere."""
        return tuple(each for each in self.differences if each.moved_milli)


class NotSupposable(ValueError):
    """Something that does not exist was supposed."""


def suppose(copy: Copy, what: Supposition, solve: Solve) -> Supposed:
    """Let it happen on the copy, and look what is otherwise. Raises `NotSupposable`."""
    with trial(copy) as t:
        before = dict(_stands(t, what.pool_id))
        for number, command in enumerate(_commands(t, what)):
            t.command_id = CommandId(derive(bytes(16), f"supposed {number}"))
            refusal = decide(t, _OPERATOR, command)
            if refusal is not None:
                told = ", ".join(f"{k}: {v}" for k, v in refusal.facts.items())
                raise NotSupposable(f"{refusal.reason.code}: {told}")
        refusal = decide(t, _OPERATOR, what.request) if what.request else None
        plan = _plan(t, copy, what.pool_id, solve)
        after = dict(_stands(t, what.pool_id))
        over = tuple(_over(t, what))
        facts: dict[str, int] = {}
        for written in t.written:
            name = type(written.fact).__name__
            facts[name] = facts.get(name, 0) + 1
    new = sorted(after.keys() - before.keys())
    return Supposed(
        copy.seq,
        tuple(_differences(before, after)),
        over,
        refusal,
        new[0] if new else None,
        plan,
        dict(sorted(facts.items())),
    )


def _commands(t: Transcript, what: Supposition) -> Iterator[Command]:
    if what.pool_id not in t.ledger.pools:
        raise NotSupposable(f"there is no pool {what.pool_id}")
    for node_id in what.lost:
        yield c.ReportHealth(what.pool_id, Health.FAILED, "supposed", node_id)
    for tenant_id, nominal in sorted(what.quota.items()):
        yield from _quota(t, what.pool_id, tenant_id, nominal)


def _quota(
    t: Transcript, pool_id: PoolId, tenant_id: TenantId, nominal: int
) -> Iterator[c.GrantQuota | c.AmendQuota]:
    """The first grant that holds gets the amount, and those beside it nothing."""
    account = t.ledger.accounts.get((tenant_id, pool_id))
    grants = account.grants.values() if account else ()
    holding = sorted((g for g in grants if g.start <= t.now < g.end), key=lambda g: (g.start, g.id))
    if not holding:
        yield c.GrantQuota(tenant_id, pool_id, nominal, 0, 0, None, FAR_FUTURE)
    for place, grant in enumerate(holding):
        yield _amended(grant, nominal if place == 0 else 0)


def _amended(grant: Grant, nominal: int) -> c.AmendQuota:
    return c.AmendQuota(grant.id, nominal, grant.borrow_milli, grant.lend_milli, grant.end)


def _plan(t: Transcript, copy: Copy, pool_id: PoolId, solve: Solve) -> Mapping[str, str]:
    """What the planner would do about those who wait, and whether it would be adopted."""
    if not t.ledger.pools[pool_id].queued:
        return {}
    problem = problem_of(t.ledger, pool_id, copy.seq, t.now)
    proposal = proposal_of(problem, solve(problem))
    decide(t, _SERVICE, proposal)
    outcome = type(t.written[-1].fact).__name__
    return {**proposal.evidence, "plan": outcome}


def _stands(t: Transcript, pool_id: PoolId) -> Iterator[tuple[ReservationId, Stand]]:
    for reservation in t.ledger.reservations.values():
        if reservation.pool_id == pool_id and reservation.state not in OVER:
            yield reservation.id, _stand(t, reservation)


def _stand(t: Transcript, reservation: Reservation) -> Stand:
    edges = {max(t.second, reservation.start)}
    edges |= {e for h in reservation.holdings for e in (h.start, h.end)}
    inside = [e for e in edges if max(t.second, reservation.start) <= e < reservation.end]
    waits = not reservation.holdings and reservation.state.value == "queued"
    short = 0 if waits else max((reservation.short_milli(at) for at in inside), default=0)
    return Stand(
        reservation.tenant_id,
        reservation.klass.value,
        reservation.state.value,
        reservation.start,
        reservation.end,
        tuple(h for h in reservation.holdings if h.end > t.now),
        short,
    )


def _differences(
    before: Mapping[ReservationId, Stand], after: Mapping[ReservationId, Stand]
) -> Iterator[Difference]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old != new:
            yield Difference(name, old, new, _moved(old, new) if old and new else 0)


def _moved(old: Stand, new: Stand) -> int:
    """Milli-GPU of the units that are held after and were not before, at the most busy instant."""
    had = {holding.piece for holding in old.holdings}
    fresh = [holding for holding in new.holdings if holding.piece not in had]
    instants = {holding.start for holding in fresh}
    at = [sum(h.piece.width_milli for h in fresh if h.start <= i < h.end) for i in instants]
    return max(at, default=0)


def _over(t: Transcript, what: Supposition) -> Iterator[Over]:
    """Tenants of the supposed quotas that have more booked than that."""
    for tenant_id, nominal in sorted(what.quota.items()):
        account = t.ledger.accounts.get((tenant_id, what.pool_id))
        if account is not None:
            booked, at = account.guaranteed.peak(t.second, FAR_FUTURE)
            if booked > nominal:
                yield Over(tenant_id, nominal, booked, Instant(at))

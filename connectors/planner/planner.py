"""From a pool's waiting requests to a command that proposes what to do about them."""

import time
from collections.abc import Callable

import structlog

from domain.commands.report import ProposePlan
from domain.ids import PrincipalId
from domain.journal import JournalUnavailable
from domain.ledger import Ledger
from domain.principal import Principal, Role
from domain.snapshot import PlanAnswer, PlanProblem, problem_of
from domain.submission import CommandGateway, Submission
from domain.timespan import Instant
from schemas.registry import Registry
from solvers.child import solve_in_child
from solvers.proposing import proposal_of

PRINCIPAL = Principal(PrincipalId("planner"), Role.SERVICE)
PERIOD_SECONDS = 1.0

_log = structlog.get_logger("planner")

Load = Callable[[], tuple[Ledger, int]]
"""The ledger at the head of the log, and that position."""


def proposals(
    ledger: Ledger,
    seq: int,
    now: Instant,
    solve: Callable[[PlanProblem], PlanAnswer] = solve_in_child,
) -> list[ProposePlan]:
    """A plan for each pool in which something waits."""
    found: list[ProposePlan] = []
    for pool in ledger.pools.values():
        if pool.queued:
            problem = problem_of(ledger, pool.id, seq, now)
            found.append(proposal_of(problem, solve(problem)))
    return found


def run(
    load: Load,
    is_waiting: Callable[[], bool],
    gateway: CommandGateway,
    registry: Registry,
    now: Callable[[], Instant],
    stopped: Callable[[], bool],
) -> None:
    """Look every second whether something waits; read, solve, propose, until told to stop."""
    while not stopped():
        try:
            if is_waiting():
                ledger, seq = load()
                plans = proposals(ledger, seq, now())
                contract_bodies = [registry.encode(plan) for plan in plans]
                submissions = [
                    Submission(PRINCIPAL, plan.plan_id, contract.type, body)
                    for plan, (contract, body) in zip(plans, contract_bodies, strict=True)
                ]
                for outcome in gateway.submit(submissions):
                    _log.info("plan_proposed", outcome=outcome.kind.value, seq=seq)
        except (JournalUnavailable, OSError) as error:
            _log.warning("not_now", error=str(error))
        time.sleep(PERIOD_SECONDS)

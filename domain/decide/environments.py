"""Environments on a reservation's units: asked for, set up, checked, torn down, wiped."""

from domain.commands.report import ReportEnvironment
from domain.commands.reservation import RequestReservation
from domain.decide import checks, timeliness
from domain.decide.transcript import Transcript
from domain.environment import (
    ENVIRONMENT_CHECKS,
    SCRATCH_GIB_MAX,
    EnvironmentReport,
    EnvironmentStage,
)
from domain.facts.environment import (
    EnvironmentAccepted,
    EnvironmentFailed,
    EnvironmentProvisioned,
    EnvironmentTornDown,
    EnvironmentWiped,
)
from domain.facts.tenant import NoticeIssued
from domain.fleet_state import Pool
from domain.refusals import Reason, Refusal, refuse
from domain.reservation import Reservation


def possible(command: RequestReservation, pool: Pool) -> Refusal | None:
    """The pool's connector can set such an environment up, and its storage is named and sized."""
    wanted = command.environment
    if wanted is None:
        return None
    if wanted.orchestrator.value not in pool.policy.orchestrators:
        problem = f"this pool's connector sets up no {wanted.orchestrator.value}"
        return refuse(Reason.NOT_ENFORCEABLE, grade=pool.policy.grade.value, problem=problem)
    if command.size.share_milli:
        problem = "an environment stands on GPUs or nodes, not on a share of one"
        return refuse(Reason.SIZE_INVALID, problem=problem)
    return checks.between(
        "environment/scratch_gib", wanted.scratch_gib, 0, SCRATCH_GIB_MAX
    ) or checks.code("environment/volume", wanted.volume)


def report_environment(t: Transcript, command: ReportEnvironment) -> Refusal | None:
    """What a provisioner tells of an environment, each report taken once."""
    found = t.ledger.reservations.get(command.reservation_id)
    if found is None:
        return refuse(Reason.NOT_FOUND, kind="reservation", id=command.reservation_id)
    if t.ledger.is_stale(command.stamp):
        return None
    refusal = (
        timeliness.believable(t, None, command.occurred_at, command.occurred_at)
        or checks.text_map("evidence", command.evidence)
        or _nodes(t, command)
        or _follows(found, command.report)
    )
    if refusal:
        return refusal
    at, stamp = command.occurred_at, command.stamp
    match command.report:
        case EnvironmentReport.PROVISIONED:
            fact = EnvironmentProvisioned(found.id, command.nodes, command.evidence, stamp)
            t.write(fact, at=at)
        case EnvironmentReport.CHECKED:
            return _checked(t, found, command)
        case EnvironmentReport.TORN_DOWN:
            t.write(EnvironmentTornDown(found.id, stamp), at=at)
        case EnvironmentReport.WIPED:
            t.write(EnvironmentWiped(found.id, command.nodes[0], command.evidence, stamp), at=at)
    return None


def _nodes(t: Transcript, command: ReportEnvironment) -> Refusal | None:
    """A report names the nodes that it is of, and a wipe shows how it was done."""
    for node_id in command.nodes:
        refusal = checks.known_node(t.ledger, node_id)
        if refusal:
            return refusal
    if command.report is EnvironmentReport.PROVISIONED and not command.nodes:
        return refuse(Reason.MALFORMED, field="nodes", problem="name the nodes that it stands on")
    if command.report is not EnvironmentReport.WIPED:
        return None
    if len(command.nodes) != 1:
        return refuse(Reason.MALFORMED, field="nodes", problem="name the one node that was wiped")
    if not command.evidence:
        return refuse(Reason.MALFORMED, field="evidence", problem="a wipe has its evidence")
    return None


def _follows(found: Reservation, report: EnvironmentReport) -> Refusal | None:
    """What is told can come after what was told before."""
    environment = found.environment
    stage = environment.stage.value if environment else "no environment"
    if environment is None:
        fits = False
    elif report is EnvironmentReport.CHECKED:
        fits = environment.stage is EnvironmentStage.PROVISIONED
    elif report is EnvironmentReport.WIPED:
        fits = True
    else:
        fits = environment.stage is not EnvironmentStage.TORN_DOWN
    if fits:
        return None
    verb = f"report an environment {report.value} of"
    return refuse(Reason.WRONG_STATE, kind="reservation", id=found.id, state=stage, verb=verb)


def _checked(t: Transcript, found: Reservation, command: ReportEnvironment) -> Refusal | None:
    """It is its tenant's once every check passed; else the tenant is told that it is not."""
    told = {check.check for check in command.checks}
    missing = [name for name in ENVIRONMENT_CHECKS if name not in told]
    failed = any(not check.passed for check in command.checks)
    if missing and not failed:
        problem = f"nothing is said of {', '.join(missing)}"
        return refuse(Reason.MALFORMED, field="checks", problem=problem)
    if failed:
        fact = EnvironmentFailed(found.id, command.checks, command.stamp)
        t.write(fact, at=command.occurred_at)
        t.write(NoticeIssued(found.tenant_id, found.id, "environment-failed", found.end))
    else:
        accepted = EnvironmentAccepted(found.id, command.checks, command.stamp)
        t.write(accepted, at=command.occurred_at)
    return None

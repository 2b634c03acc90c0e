"""Deciding: what a command comes to, as facts or as a refusal. Pure, but for its transcript."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from domain import commands as c
from domain.access import COMMAND_VERBS
from domain.commands import COMMANDS, Command
from domain.decide import (
    accepting,
    billing,
    booking,
    environments,
    health,
    nodes,
    planning,
    pool_hours,
    pools,
    preempting,
    providers,
    renewing,
    reports,
    reservations,
    subjects,
    tenants,
)
from domain.decide.transcript import Transcript
from domain.facts.request import CommandHadNoEffect, CommandRefused
from domain.facts.shard import AccessDenied
from domain.ids import TenantId
from domain.principal import Principal, Role
from domain.refusals import Reason, Refusal, refuse

Rule = Callable[[Transcript, Any], Refusal | None]

RULES: dict[type[Command], Rule] = {
    c.OpenPool: pools.open_pool,
    c.ChangePolicy: pools.change_policy,
    c.ClosePool: pools.close_pool,
    c.Freeze: pools.freeze,
    c.Thaw: pools.thaw,
    c.Preempt: preempting.preempt,
    c.JoinNode: nodes.join_node,
    c.ReportAcceptance: accepting.report_acceptance,
    c.TestNode: accepting.test_node,
    c.CordonNode: nodes.cordon_node,
    c.UncordonNode: nodes.uncordon_node,
    c.DrainNode: nodes.drain_node,
    c.PlanMaintenance: nodes.plan_maintenance,
    c.CancelMaintenance: nodes.cancel_maintenance,
    c.ReportHealth: health.report_health,
    c.RetireNode: nodes.retire_node,
    c.RegisterTenant: tenants.register_tenant,
    c.TagTenant: tenants.tag_tenant,
    c.CloseTenant: tenants.close_tenant,
    c.GrantQuota: tenants.grant_quota,
    c.AmendQuota: tenants.amend_quota,
    c.ConsentOverflow: tenants.consent_overflow,
    c.RequestReservation: booking.request_reservation,
    c.ConfirmHold: reservations.confirm_hold,
    c.ExtendReservation: reservations.extend_reservation,
    c.ShrinkReservation: reservations.shrink_reservation,
    c.StopRenewing: renewing.stop_renewing,
    c.GiveBack: reservations.give_back,
    c.CancelReservation: reservations.cancel_reservation,
    c.ReportApplied: reports.report_applied,
    c.ReportFreed: reports.report_freed,
    c.ReportActivity: reports.report_activity,
    c.ReportEnvironment: environments.report_environment,
    c.ReportDenial: subjects.report_denial,
    c.ProposePlan: planning.propose_plan,
    c.ConfirmClock: reports.confirm_clock,
    c.EraseSubject: subjects.erase_subject,
    c.PublishPriceBook: billing.publish_price_book,
    c.ClosePeriod: billing.close_period,
    c.SealPeriod: billing.seal_period,
    c.ClosePoolHours: pool_hours.close_pool_hours,
    c.ImportProviderInvoice: providers.import_provider_invoice,
}
assert RULES.keys() == set(COMMANDS.values())


@dataclass(frozen=True, slots=True)
class Stranger:
    """A principal reached for what is not its own: it is told "not found", and it is noted."""

    refusal: Refusal
    subject: str


def decide(t: Transcript, principal: Principal, command: Command) -> Refusal | None:
    """Write what a command comes to, and return the refusal when it is one.

    Whatever it comes to is at least one fact: its effects, CommandRefused or
    CommandHadNoEffect. A report that was heard before writes nothing.
    """
    mark = t.mark()
    denied = authorise(t, principal, command)
    if denied is None:
        refusal = RULES[type(command)](t, command)
    elif isinstance(denied, Stranger):
        refusal = denied.refusal
    else:
        refusal = denied
    name = type(command).__name__
    if refusal is not None:
        t.back_to(mark)
        if isinstance(denied, Stranger):
            t.write(
                AccessDenied(
                    t.ledger.shard, principal.id, principal.tenant_id, name, denied.subject
                )
            )
        t.write(
            CommandRefused(
                t.command_id,
                name,
                refusal.reason.code,
                refusal.facts,
                refusal.offers,
                refusal.asked,
            )
        )
    elif len(t.written) == mark[0] and not isinstance(command, c.REPORTS):
        t.write(CommandHadNoEffect(t.command_id, name, "already so"))
    return refusal


def authorise(t: Transcript, principal: Principal, command: Command) -> Refusal | Stranger | None:
    """Whether a principal may use this verb on this subject."""
    verb = COMMAND_VERBS[type(command).__name__]
    if principal.role not in verb.roles:
        return refuse(Reason.FORBIDDEN, verb=type(command).__name__, role=principal.role.value)
    if not verb.own or principal.role is not Role.TENANT:
        return None
    kind, subject, owner = _subject(t, command)
    if owner is not None and principal.tenant_id is not None:
        if t.ledger.is_within(owner, principal.tenant_id):
            return None
    elif owner is None:
        return refuse(Reason.NOT_FOUND, kind=kind, id=subject)
    return Stranger(refuse(Reason.NOT_FOUND, kind=kind, id=subject), f"{kind}/{subject}")


def _subject(t: Transcript, command: Command) -> tuple[str, str, TenantId | None]:
    """What a command reaches for, and whose it is."""
    reservation_id = getattr(command, "reservation_id", None)
    if reservation_id is not None:
        reservation = t.ledger.reservations.get(reservation_id)
        return "reservation", reservation_id, reservation.tenant_id if reservation else None
    tenant_id: TenantId = getattr(command, "tenant_id")  # noqa: B009 - own verbs have one of both
    return "tenant", tenant_id, tenant_id if tenant_id in t.ledger.tenants else None

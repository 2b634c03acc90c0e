"""Evolving: how each fact changes the ledger. It refuses nothing and decides nothing."""

from collections.abc import Callable
from typing import Any

from domain import facts
from domain.evolve import billing, environments, fleet, reservations, tenancy
from domain.facts import billing as money
from domain.facts import environment as e
from domain.facts import hardware, level, node, plan, pool, quota, request, shard, tenant
from domain.facts import reservation as r
from domain.facts.fact import OfNode, OfReservation
from domain.ledger import Ledger
from domain.timespan import Instant

Step = Callable[[Ledger, Any, Instant], None]


def _nothing(ledger: Ledger, fact: facts.Fact, at: Instant) -> None:
    """A fact that readers want to know and the ledger needs not."""


STEPS: dict[type[facts.Fact], Step] = {
    pool.PoolOpened: fleet.pool_opened,
    pool.PoolPolicyChanged: fleet.pool_policy_changed,
    pool.PoolFrozen: fleet.pool_frozen,
    pool.PoolThawed: fleet.pool_thawed,
    pool.PoolClosed: fleet.pool_closed,
    pool.PoolHoursClosed: billing.pool_hours_closed,
    pool.PreemptionOrdered: fleet.preemption_ordered,
    level.DomainFailed: _nothing,
    level.DomainRecovered: _nothing,
    level.DomainMaintenancePlanned: _nothing,
    node.NodeJoined: fleet.node_joined,
    node.AcceptanceStarted: fleet.acceptance_started,
    node.AcceptancePassed: fleet.acceptance_passed,
    node.AcceptanceFailed: fleet.acceptance_failed,
    node.NodeCordoned: fleet.node_cordoned,
    node.NodeUncordoned: fleet.node_uncordoned,
    node.NodeDrainStarted: fleet.node_drain_started,
    node.NodeDrainCancelled: fleet.node_drain_cancelled,
    node.NodeDrained: fleet.node_drained,
    node.MaintenancePlanned: fleet.maintenance_planned,
    node.MaintenanceCancelled: fleet.maintenance_cancelled,
    node.MaintenanceStarted: fleet.maintenance_started,
    node.MaintenanceEnded: fleet.maintenance_ended,
    node.NodeSuspected: fleet.node_suspected,
    node.NodeRebooting: fleet.node_rebooting,
    node.NodeFailed: fleet.node_failed,
    node.NodeRecovered: fleet.node_recovered,
    node.NodeHeard: fleet.node_heard,
    node.NodeRetired: fleet.node_retired,
    node.UnitsFailed: fleet.units_failed,
    node.UnitsRecovered: fleet.units_recovered,
    hardware.UnitsApplied: fleet.units_applied,
    hardware.ApplyFailed: fleet.apply_failed,
    hardware.UnitsFreed: fleet.units_freed,
    hardware.ReleasePresumed: fleet.release_presumed,
    hardware.ActivityObserved: fleet.activity_observed,
    tenant.TenantRegistered: tenancy.tenant_registered,
    tenant.TenantTagged: tenancy.tenant_tagged,
    tenant.TenantClosed: tenancy.tenant_closed,
    tenant.OverflowConsented: tenancy.overflow_consented,
    tenant.NoticeIssued: _nothing,
    quota.QuotaGranted: tenancy.quota_set,
    quota.QuotaAmended: tenancy.quota_set,
    quota.QuotaExpired: tenancy.quota_expired,
    r.ReservationHeld: reservations.held,
    r.ReservationConfirmed: reservations.confirmed,
    r.HoldConfirmed: reservations.hold_confirmed,
    r.ReservationQueued: reservations.queued,
    r.QueuedRefused: _nothing,
    r.ReservationLapsed: _nothing,
    r.ReservationExtended: reservations.extended,
    r.RenewalAgreed: reservations.renewal_agreed,
    r.ReservationRenewed: reservations.extended,
    r.RenewalRefused: reservations.renewal_refused,
    r.RenewalStopped: reservations.renewal_stopped,
    r.ReservationShrunk: reservations.shrunk,
    r.ReservationStarted: reservations.started,
    r.ReservationAtRisk: reservations.at_risk,
    r.ReservationDegraded: reservations.degraded,
    r.ReservationInterrupted: _nothing,
    r.ReservationHealed: reservations.healed,
    r.ReservationPreempted: reservations.preempted,
    r.ReservationGivenBack: _nothing,
    r.ReservationCancelled: _nothing,
    r.ReservationEnded: reservations.ended,
    r.UnitsAssigned: reservations.units_assigned,
    r.UnitsReassigned: reservations.units_reassigned,
    r.UnitsReleased: reservations.units_released,
    e.EnvironmentRequested: environments.requested,
    e.EnvironmentProvisioned: environments.reported,
    e.EnvironmentAccepted: environments.reported,
    e.EnvironmentFailed: environments.reported,
    e.EnvironmentTornDown: environments.reported,
    e.EnvironmentWiped: environments.wiped,
    r.OverflowStarted: _nothing,
    r.OverflowEnded: _nothing,
    request.CommandRefused: _nothing,
    request.CommandHadNoEffect: _nothing,
    request.CommandQuarantined: _nothing,
    plan.PlanProposed: _nothing,
    plan.PlanAdopted: _nothing,
    plan.PlanRefused: _nothing,
    shard.AccessDenied: _nothing,
    shard.SubjectErased: _nothing,
    shard.LeaseTaken: _nothing,
    shard.ClockClamped: _nothing,
    shard.ClockConfirmed: _nothing,
    money.PriceBookPublished: billing.price_book_published,
    money.PeriodClosing: billing.period_closing,
    money.PeriodClosed: billing.period_closed,
    money.ProviderInvoiceImported: billing.provider_invoice_imported,
}
assert STEPS.keys() == set(facts.FACTS.values())

INTENT = frozenset(
    {
        r.ReservationHeld,
        r.ReservationConfirmed,
        r.HoldConfirmed,
        r.ReservationQueued,
        r.ReservationExtended,
        r.ReservationRenewed,
        r.RenewalAgreed,
        r.RenewalStopped,
        e.EnvironmentRequested,
        r.ReservationShrunk,
        r.ReservationPreempted,
        r.ReservationGivenBack,
        r.ReservationCancelled,
        r.ReservationEnded,
        node.NodeJoined,
        node.NodeCordoned,
        node.NodeUncordoned,
        node.NodeDrainStarted,
        node.NodeDrainCancelled,
        node.MaintenancePlanned,
        node.MaintenanceCancelled,
        node.NodeRetired,
    }
)
"""Facts that change what is intended; their version is the ETag of a reservation or node."""


def evolve(ledger: Ledger, fact: facts.Fact, at: Instant) -> int:
    """Fold one fact into the ledger and return the version that its stream has now.

    `at` is when it occurred. Every change can be taken back through `ledger.undo`.
    """
    kind = type(fact)
    STEPS[kind](ledger, fact, at)
    stream = fact.stream
    version = ledger.versions.get(stream, 0) + 1
    if not stream.startswith("request/"):
        ledger.undo.put(ledger.versions, stream, version)
    if kind in INTENT:
        _mark_intent(ledger, fact, version)
    return version


def _mark_intent(ledger: Ledger, fact: Any, version: int) -> None:  # noqa: ANN401 - any of INTENT
    if isinstance(fact, OfReservation):
        reservation = ledger.reservations.get(fact.reservation_id)
        if reservation is not None:
            ledger.undo.set(reservation, "intent_version", version)
    elif isinstance(fact, OfNode):
        ledger.undo.set(ledger.nodes[fact.node_id], "intent_version", version)

"""Which route means which command: one table, and what of a command stands in its path."""

from dataclasses import dataclass

from domain import commands as c
from domain.commands import Command


@dataclass(frozen=True, slots=True)
class Route:
    """POST on a path becomes a command; names in braces are fields of it."""

    path: str
    command: type[Command]
    status: int = 200


ROUTES: tuple[Route, ...] = (
    Route("/v1/pools", c.OpenPool, 201),
    Route("/v1/pools/{pool_id}/policy", c.ChangePolicy),
    Route("/v1/pools/{pool_id}/close", c.ClosePool),
    Route("/v1/pools/{pool_id}/preempt", c.Preempt),
    Route("/v1/freeze", c.Freeze),
    Route("/v1/thaw", c.Thaw),
    Route("/v1/nodes", c.JoinNode, 201),
    Route("/v1/nodes/{node_id}/acceptance", c.ReportAcceptance),
    Route("/v1/nodes/{node_id}/test", c.TestNode),
    Route("/v1/nodes/{node_id}/cordon", c.CordonNode),
    Route("/v1/nodes/{node_id}/uncordon", c.UncordonNode),
    Route("/v1/nodes/{node_id}/drain", c.DrainNode),
    Route("/v1/nodes/{node_id}/retire", c.RetireNode),
    Route("/v1/health-reports", c.ReportHealth),
    Route("/v1/maintenances", c.PlanMaintenance, 201),
    Route("/v1/maintenances/{maintenance_id}/cancel", c.CancelMaintenance),
    Route("/v1/tenants", c.RegisterTenant, 201),
    Route("/v1/tenants/{tenant_id}/tags", c.TagTenant),
    Route("/v1/tenants/{tenant_id}/close", c.CloseTenant),
    Route("/v1/tenants/{tenant_id}/overflow-consent", c.ConsentOverflow),
    Route("/v1/quota", c.GrantQuota, 201),
    Route("/v1/quota/{grant_id}/amend", c.AmendQuota),
    Route("/v1/reservations", c.RequestReservation, 201),
    Route("/v1/reservations/{reservation_id}/confirm", c.ConfirmHold),
    Route("/v1/reservations/{reservation_id}/extend", c.ExtendReservation),
    Route("/v1/reservations/{reservation_id}/shrink", c.ShrinkReservation),
    Route("/v1/reservations/{reservation_id}/stop-renewing", c.StopRenewing),
    Route("/v1/reservations/{reservation_id}/give-back", c.GiveBack),
    Route("/v1/reservations/{reservation_id}/cancel", c.CancelReservation),
    Route("/v1/reports/applied", c.ReportApplied),
    Route("/v1/reports/freed", c.ReportFreed),
    Route("/v1/reports/activity", c.ReportActivity),
    Route("/v1/reports/environment", c.ReportEnvironment),
    Route("/v1/reports/denial", c.ReportDenial),
    Route("/v1/plans", c.ProposePlan),
    Route("/v1/clock/confirm", c.ConfirmClock),
    Route("/v1/price-books", c.PublishPriceBook, 201),
    Route("/v1/periods", c.ClosePeriod, 201),
    Route("/v1/periods/seal", c.SealPeriod),
    Route("/v1/pool-hours", c.ClosePoolHours, 201),
    Route("/v1/provider-invoices", c.ImportProviderInvoice, 201),
    Route("/v1/subjects/{subject_id}/erase", c.EraseSubject),
)
assert {route.command for route in ROUTES} == set(c.COMMANDS.values())

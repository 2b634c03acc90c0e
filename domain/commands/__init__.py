"""Commands: what is asked of the ledger, in the imperative, one class each."""

from domain.commands.billing import (
    ClosePeriod,
    ClosePoolHours,
    ImportProviderInvoice,
    PublishPriceBook,
    SealPeriod,
)
from domain.commands.node import (
    CancelMaintenance,
    CordonNode,
    DrainNode,
    JoinNode,
    PlanMaintenance,
    ReportAcceptance,
    ReportHealth,
    RetireNode,
    TestNode,
    UncordonNode,
)
from domain.commands.pool import ChangePolicy, ClosePool, Freeze, OpenPool, Preempt, Thaw
from domain.commands.report import (
    ConfirmClock,
    ProposePlan,
    ReportActivity,
    ReportApplied,
    ReportDenial,
    ReportEnvironment,
    ReportFreed,
)
from domain.commands.reservation import (
    CancelReservation,
    ConfirmHold,
    ExtendReservation,
    GiveBack,
    RequestReservation,
    ShrinkReservation,
    StopRenewing,
)
from domain.commands.subject import EraseSubject
from domain.commands.tenant import (
    AmendQuota,
    CloseTenant,
    ConsentOverflow,
    GrantQuota,
    RegisterTenant,
    TagTenant,
)

Command = (
    OpenPool
    | ChangePolicy
    | ClosePool
    | Freeze
    | Thaw
    | Preempt
    | JoinNode
    | ReportAcceptance
    | TestNode
    | CordonNode
    | UncordonNode
    | DrainNode
    | PlanMaintenance
    | CancelMaintenance
    | ReportHealth
    | RetireNode
    | RegisterTenant
    | TagTenant
    | CloseTenant
    | GrantQuota
    | AmendQuota
    | ConsentOverflow
    | RequestReservation
    | ConfirmHold
    | ExtendReservation
    | ShrinkReservation
    | StopRenewing
    | GiveBack
    | CancelReservation
    | ReportApplied
    | ReportFreed
    | ReportActivity
    | ReportDenial
    | ReportEnvironment
    | ProposePlan
    | ConfirmClock
    | EraseSubject
    | PublishPriceBook
    | ClosePeriod
    | SealPeriod
    | ClosePoolHours
    | ImportProviderInvoice
)

COMMANDS: dict[str, type[Command]] = {command.__name__: command for command in Command.__args__}
"""Every command, by the name that its schema bears."""

REPORTS = (ReportApplied, ReportFreed, ReportActivity, ReportEnvironment)
"""Commands that take no claim: they deduplicate by source, session and number."""

__all__ = [
    "COMMANDS",
    "REPORTS",
    "AmendQuota",
    "CancelMaintenance",
    "CancelReservation",
    "ChangePolicy",
    "ClosePeriod",
    "ClosePool",
    "ClosePoolHours",
    "CloseTenant",
    "Command",
    "ConfirmClock",
    "ConfirmHold",
    "ConsentOverflow",
    "CordonNode",
    "DrainNode",
    "EraseSubject",
    "ExtendReservation",
    "Freeze",
    "GiveBack",
    "GrantQuota",
    "ImportProviderInvoice",
    "JoinNode",
    "OpenPool",
    "PlanMaintenance",
    "Preempt",
    "ProposePlan",
    "PublishPriceBook",
    "RegisterTenant",
    "ReportAcceptance",
    "ReportActivity",
    "ReportApplied",
    "ReportDenial",
    "ReportEnvironment",
    "ReportFreed",
    "ReportHealth",
    "RequestReservation",
    "RetireNode",
    "SealPeriod",
    "ShrinkReservation",
    "StopRenewing",
    "TagTenant",
    "TestNode",
    "Thaw",
    "UncordonNode",
]

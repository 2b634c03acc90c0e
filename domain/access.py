"""Who may use which verb: every command and every read declares its roles, in one table."""

from collections.abc import Mapping
from dataclasses import dataclass

from domain.commands import COMMANDS
from domain.principal import Role

_EVERYONE = frozenset(Role)
_OPERATORS = frozenset({Role.OPERATOR})
_BOOKERS = frozenset({Role.TENANT, Role.OPERATOR})
_MONITORS = frozenset({Role.OPERATOR, Role.SERVICE})
_ACCOUNTANTS = frozenset({Role.FINANCE, Role.OPERATOR})
_AUDITORS = frozenset({Role.AUDITOR, Role.OPERATOR})
_READERS = frozenset({Role.TENANT, Role.OPERATOR, Role.FINANCE, Role.AUDITOR})


@dataclass(frozen=True, slots=True)
class Verb:
    """Who may use a verb; an own verb lets a tenant reach only what is its own."""

    roles: frozenset[Role]
    own: bool = False


COMMAND_VERBS: Mapping[str, Verb] = {
    "OpenPool": Verb(_OPERATORS),
    "ChangePolicy": Verb(_OPERATORS),
    "ClosePool": Verb(_OPERATORS),
    "Freeze": Verb(_OPERATORS),
    "Thaw": Verb(_OPERATORS),
    "Preempt": Verb(_OPERATORS),
    "JoinNode": Verb(_MONITORS),
    "ReportAcceptance": Verb(_MONITORS),
    "TestNode": Verb(_OPERATORS),
    "CordonNode": Verb(_OPERATORS),
    "UncordonNode": Verb(_OPERATORS),
    "DrainNode": Verb(_OPERATORS),
    "PlanMaintenance": Verb(_OPERATORS),
    "CancelMaintenance": Verb(_OPERATORS),
    "ReportHealth": Verb(_MONITORS),
    "RetireNode": Verb(_OPERATORS),
    "RegisterTenant": Verb(_MONITORS),
    "TagTenant": Verb(_MONITORS),
    "CloseTenant": Verb(_OPERATORS),
    "GrantQuota": Verb(_MONITORS),
    "AmendQuota": Verb(_MONITORS),
    "ConsentOverflow": Verb(_BOOKERS, own=True),
    "RequestReservation": Verb(_BOOKERS | {Role.SERVICE}, own=True),
    "ConfirmHold": Verb(_BOOKERS, own=True),
    "ExtendReservation": Verb(_BOOKERS, own=True),
    "ShrinkReservation": Verb(_BOOKERS, own=True),
    "StopRenewing": Verb(_BOOKERS, own=True),
    "GiveBack": Verb(_BOOKERS, own=True),
    "CancelReservation": Verb(_BOOKERS, own=True),
    "ReportApplied": Verb(frozenset({Role.SERVICE})),
    "ReportFreed": Verb(frozenset({Role.SERVICE})),
    "ReportActivity": Verb(frozenset({Role.SERVICE})),
    "ReportEnvironment": Verb(frozenset({Role.SERVICE})),
    "ReportDenial": Verb(frozenset({Role.SERVICE})),
    "ProposePlan": Verb(frozenset({Role.SERVICE})),
    "ConfirmClock": Verb(_OPERATORS),
    "EraseSubject": Verb(_OPERATORS),
    "PublishPriceBook": Verb(_ACCOUNTANTS),
    "ClosePeriod": Verb(_ACCOUNTANTS),
    "SealPeriod": Verb(_ACCOUNTANTS),
    "ClosePoolHours": Verb(_ACCOUNTANTS),
    "ImportProviderInvoice": Verb(_ACCOUNTANTS),
}

READ_VERBS: Mapping[str, Verb] = {
    "directory": Verb(frozenset({Role.OPERATOR, Role.AUDITOR})),
    "describe": Verb(_OPERATORS),
    "whoami": Verb(_EVERYONE),
    "status": Verb(_EVERYONE),
    "availability": Verb(_BOOKERS | {Role.SERVICE}),
    "calendar": Verb(_READERS, own=True),
    "calendar_feed": Verb(_READERS, own=True),
    "reservation": Verb(_READERS, own=True),
    "reservation_feed": Verb(_READERS, own=True),
    "reservations": Verb(_READERS, own=True),
    "why": Verb(_READERS, own=True),
    "nodes": Verb(frozenset({Role.OPERATOR, Role.AUDITOR, Role.SERVICE})),
    "node_health": Verb(_READERS, own=True),
    "pools": Verb(_EVERYONE),
    "tenants": Verb(frozenset({Role.OPERATOR, Role.FINANCE, Role.AUDITOR})),
    "quota": Verb(_READERS, own=True),
    "usable_quota": Verb(_READERS | {Role.SERVICE}, own=True),
    "quota_oddities": Verb(_AUDITORS),
    "prices": Verb(_READERS, own=True),
    "periods": Verb(_READERS, own=True),
    "pool_hours": Verb(frozenset({Role.OPERATOR, Role.FINANCE, Role.AUDITOR})),
    "usage": Verb(_READERS, own=True),
    "events": Verb(_READERS | {Role.SERVICE}, own=True),
    "export": Verb(_READERS, own=True),
    "verifier_key": Verb(_EVERYONE),
    "checkpoint": Verb(_AUDITORS),
    "inclusion": Verb(_AUDITORS),
    "consistency": Verb(_AUDITORS),
    "replay": Verb(_AUDITORS),
    "account": Verb(_AUDITORS),
    "audit": Verb(frozenset({Role.AUDITOR, Role.OPERATOR})),
    "projections": Verb(frozenset({Role.OPERATOR, Role.AUDITOR, Role.SERVICE})),
    "explain": Verb(frozenset({Role.TENANT, Role.OPERATOR, Role.AUDITOR}), own=True),
    "what_if": Verb(frozenset({Role.OPERATOR, Role.AUDITOR})),
    "queue": Verb(frozenset({Role.TENANT, Role.OPERATOR, Role.AUDITOR}), own=True),
    "plans": Verb(frozenset({Role.OPERATOR, Role.AUDITOR})),
}

assert COMMAND_VERBS.keys() == COMMANDS.keys()

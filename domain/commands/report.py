"""Commands by which hardware connectors, planners and operators report."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.environment import EnvironmentReport
from domain.facts.hardware import ReportStamp
from domain.facts.node import CheckReport
from domain.ids import NodeId, PlanId, PoolId, PrincipalId, ReservationId, TenantId
from domain.timespan import Instant
from domain.units import Piece, Segment


@dataclass(frozen=True, slots=True)
class ReportApplied:
    """Units of one node were handed to their holder, or could not be (`failure` says why)."""

    node_id: NodeId
    reservation_id: ReservationId
    pieces: tuple[Piece, ...]
    occurred_at: Instant
    stamp: ReportStamp
    failure: str = ""


@dataclass(frozen=True, slots=True)
class ReportFreed:
    """Units of one node are free of their holder, and clean."""

    node_id: NodeId
    reservation_id: ReservationId
    pieces: tuple[Piece, ...]
    occurred_at: Instant
    stamp: ReportStamp


@dataclass(frozen=True, slots=True)
class ReportActivity:
    """Units were seen occupied, or idle in their holder's hands, over a span."""

    node_id: NodeId
    reservation_id: ReservationId
    pieces: tuple[Piece, ...]
    start: Instant
    end: Instant
    occupied: bool
    active: bool
    stamp: ReportStamp


@dataclass(frozen=True, slots=True)
class ReportEnvironment:
    """A reservation's environment was set up, checked, torn down, or wiped from one node."""

    reservation_id: ReservationId
    report: EnvironmentReport
    occurred_at: Instant
    stamp: ReportStamp
    nodes: tuple[NodeId, ...] = ()
    """Where it was set up; the one node that was wiped."""
    checks: tuple[CheckReport, ...] = ()
    evidence: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportDenial:
    """A principal read a reservation that is not its own, and was told that there is none."""

    principal_id: PrincipalId
    tenant_id: TenantId | None
    verb: str
    reservation_id: ReservationId


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A plan's wish: one reservation sits on these segments instead."""

    reservation_id: ReservationId
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class PlannedRefusal:
    """A plan's proof that a queued request fits in no way, or the time spent without one."""

    reservation_id: ReservationId
    reason: str
    evidence: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ProposePlan:
    """Offer moves and admissions that were computed from one position of the log."""

    plan_id: PlanId
    pool_id: PoolId
    from_seq: int
    moves: tuple[PlannedMove, ...]
    admissions: tuple[PlannedMove, ...]
    refusals: tuple[PlannedRefusal, ...]
    evidence: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ConfirmClock:
    """Confirm that a clock which jumped ahead is right."""

    ahead_microseconds: int

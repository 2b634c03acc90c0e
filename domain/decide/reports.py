"""Deciding on what hardware reports: facts of possession, each taken once."""

from domain.commands.report import ConfirmClock, ReportActivity, ReportApplied, ReportFreed
from domain.decide import checks, timeliness
from domain.decide.transcript import Transcript
from domain.facts.hardware import ActivityObserved, ApplyFailed, UnitsApplied, UnitsFreed
from domain.facts.shard import ClockConfirmed
from domain.refusals import Reason, Refusal, refuse
from domain.timespan import Timespan

AHEAD_MAX = 100 * 366 * 86_400 * 1_000_000
"""A century in microseconds: no clock is believed that is ahead by more."""


def _known(t: Transcript, command: ReportApplied | ReportFreed | ReportActivity) -> Refusal | None:
    refusal = checks.known_node(t.ledger, command.node_id)
    if refusal:
        return refusal
    if command.reservation_id not in t.ledger.reservations:
        return refuse(Reason.NOT_FOUND, kind="reservation", id=command.reservation_id)
    for piece in command.pieces:
        whole = t.ledger.nodes[command.node_id].piece
        inside = whole.first_milli <= piece.first_milli < piece.end_milli <= whole.end_milli
        if piece.node_id != command.node_id or not inside:
            return refuse(Reason.MALFORMED, field="pieces", problem="not units of that node")
    if t.ledger.is_stale(command.stamp):
        return None
    if isinstance(command, ReportActivity):
        start, end = command.start, command.end
    else:
        start = end = command.occurred_at
    return timeliness.believable(t, t.ledger.nodes[command.node_id], start, end)


def report_applied(t: Transcript, command: ReportApplied) -> Refusal | None:
    """Units were handed to their holder, or could not be."""
    refusal = _known(t, command)
    if refusal or t.ledger.is_stale(command.stamp):
        return refusal
    pool_id = t.ledger.nodes[command.node_id].pool_id
    where = (pool_id, command.node_id, command.reservation_id, command.pieces)
    if command.failure:
        fact = ApplyFailed(*where, command.failure, command.stamp)
        t.write(fact, at=command.occurred_at)
    else:
        t.write(UnitsApplied(*where, command.stamp), at=command.occurred_at)
    return None


def report_freed(t: Transcript, command: ReportFreed) -> Refusal | None:
    """Units are free of their holder, and clean."""
    refusal = _known(t, command)
    if refusal or t.ledger.is_stale(command.stamp):
        return refusal
    pool_id = t.ledger.nodes[command.node_id].pool_id
    fact = UnitsFreed(
        pool_id, command.node_id, command.reservation_id, command.pieces, command.stamp
    )
    t.write(fact, at=command.occurred_at)
    return None


def report_activity(t: Transcript, command: ReportActivity) -> Refusal | None:
    """Units were seen occupied or idle over a span."""
    refusal = _known(t, command)
    if refusal or t.ledger.is_stale(command.stamp):
        return refusal
    if Timespan(command.start, command.end).is_empty:
        return refuse(Reason.WINDOW_INVALID, problem="the span observed is empty")
    fact = ActivityObserved(
        t.ledger.nodes[command.node_id].pool_id,
        command.node_id,
        command.reservation_id,
        command.pieces,
        command.start,
        command.end,
        command.occupied,
        command.active,
        command.stamp,
    )
    t.write(fact, at=command.end)
    return None


def confirm_clock(t: Transcript, command: ConfirmClock) -> Refusal | None:
    """An operator says that a clock which jumped ahead is right."""
    refusal = checks.between("ahead_microseconds", command.ahead_microseconds, 0, AHEAD_MAX)
    if refusal:
        return refusal
    t.write(ClockConfirmed(t.ledger.shard, command.ahead_microseconds))
    return None

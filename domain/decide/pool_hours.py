"""Deciding on the close of pool-hours: only what balances is closed."""

from domain.commands.billing import ClosePoolHours
from domain.decide import checks
from domain.decide.transcript import Transcript
from domain.facts.pool import PoolHoursClosed
from domain.pool_hours import HOUR, STATES, PoolHour
from domain.refusals import Reason, Refusal, refuse

POOL_HOURS_MAX = 168
"""Hours that one command closes: a week of them fits one event."""


def close_pool_hours(t: Transcript, command: ClosePoolHours) -> Refusal | None:
    """Hours follow each other without a gap, are over, and each sums to its capacity."""
    if command.pool_id not in t.ledger.pools:
        return refuse(Reason.NOT_FOUND, kind="pool", id=command.pool_id)
    refusal = checks.between("cutoff_seq", command.cutoff_seq, 1, checks.MILLI_MAX)
    if refusal:
        return refusal
    asked = len(command.hours)
    if not asked:
        return refuse(Reason.MALFORMED, field="hours", problem="name at least one hour")
    if asked > POOL_HOURS_MAX:
        return refuse(Reason.LIMIT, limit="pool_hours_max", max=POOL_HOURS_MAX, asked=asked)
    refusal = _in_order(t, command)
    if refusal:
        return refusal
    for number, hour in enumerate(command.hours):
        refusal = _balances(f"hours/{number}", command, hour)
        if refusal:
            return refusal
    t.write(PoolHoursClosed(command.pool_id, command.cutoff_seq, command.hours))
    return None


def _in_order(t: Transcript, command: ClosePoolHours) -> Refusal | None:
    """One hour after the other, from where the last close ended, up to now."""
    first = command.hours[0].start
    closed = t.ledger.pool_hours.get(command.pool_id)
    if closed is not None and first < closed:
        name = f"{command.pool_id}/{first}"
        return refuse(
            Reason.WRONG_STATE, kind="pool hour", id=name, state="closed", verb="close again"
        )
    if closed is not None and first != closed:
        problem = f"closed up to {closed}: begin there"
        return refuse(Reason.WINDOW_INVALID, problem=problem)
    if first % HOUR or first < 0:
        return refuse(Reason.WINDOW_INVALID, problem="pool-hours are whole hours of UTC")
    for number, hour in enumerate(command.hours):
        if hour.start != first + number * HOUR:
            problem = "hours follow each other without a gap"
            return refuse(Reason.MALFORMED, field=f"hours/{number}/start", problem=problem)
    if command.hours[-1].start + HOUR > t.now:
        return refuse(Reason.WINDOW_INVALID, problem="the last hour is not over yet")
    return None


def _balances(field: str, command: ClosePoolHours, hour: PoolHour) -> Refusal | None:
    """Known states, each named once, that sum to the capacity exactly."""
    names = [part.state for part in hour.states]
    if len(set(names)) != len(names) or not set(names) <= set(STATES):
        problem = f"each of {', '.join(STATES)} at most once"
        return refuse(Reason.MALFORMED, field=f"{field}/states", problem=problem)
    if hour.capacity_gpu_microseconds < 0 or any(p.gpu_microseconds < 0 for p in hour.states):
        return refuse(Reason.MALFORMED, field=field, problem="amounts are not negative")
    if hour.filled == hour.capacity_gpu_microseconds:
        return None
    return refuse(
        Reason.WRONG_STATE,
        kind="pool hour",
        id=f"{command.pool_id}/{hour.start}",
        state=f"unreconciled: its states come to {hour.filled},"
        f" its capacity to {hour.capacity_gpu_microseconds} GPU-microseconds",
        verb="close",
    )

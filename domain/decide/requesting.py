"""What a request for units asks for, held against everything that can be said without anyone's units."""

from dataclasses import dataclass

from domain.commands.reservation import RequestReservation
from domain.decide import checks, environments
from domain.decide.placing import Ask
from domain.decide.transcript import Transcript
from domain.fleet_state import Pool
from domain.policy import Act
from domain.refusals import Asked, Reason, Refusal, refuse
from domain.sizes import Parts, ReservationClass, parts_of
from domain.timespan import Instant, Timespan, seconds
from domain.units import MILLI_PER_GPU

START_PAST_SECONDS_MAX = 60
"""A start up to this long ago means now: the caller's second is not ours."""

OFFERS_MAX = 20
UNITS_MAX = 1 << 31
"""More GPUs than any fleet has: what is asked beyond it is a slip, not an ask."""


@dataclass(frozen=True, slots=True)
class Request:
    """A command that passed its checks: what is asked, of whom, when."""

    command: RequestReservation
    pool: Pool
    span: Timespan
    parts: Parts
    klass: ReservationClass

    @property
    def ask(self) -> Ask:
        """The units that are wanted."""
        return Ask(self.pool, self.command.tenant_id, self.parts, self.command.shape, self.span)

    @property
    def asked(self) -> Asked:
        """What is remembered of it when the answer is no."""
        command = self.command
        span = (self.span.start, self.span.end)
        whose = (command.tenant_id, command.pool_id, self.klass)
        return Asked(*whose, command.size, command.shape, *span)


def check(t: Transcript, command: RequestReservation) -> Request | Refusal:
    """Everything that can be said without looking at anyone's units."""
    ledger = t.ledger
    refusal = (
        checks.known_tenant(ledger, command.tenant_id)
        or checks.known_pool(ledger, command.pool_id)
        or _tenant_open(t, command)
        or checks.not_frozen(ledger, command.pool_id, Act.BOOKINGS)
        or checks.text_map("tags", command.tags)
        or checks.text_map("shape/labels", command.shape.labels)
    )
    if refusal:
        return refusal
    pool = ledger.pools[command.pool_id]
    span = _window(t, command, pool)
    if isinstance(span, Refusal):
        return span
    refusal = (
        _size(command, pool)
        or _shape(command, pool)
        or _hold(command, pool)
        or environments.possible(command, pool)
        or _tags(t, command, pool)
    )
    if refusal:
        return refusal
    parts = parts_of(command.size, pool.node_gpus(command.shape.models))
    return Request(command, pool, span, parts, command.klass)


def _tenant_open(t: Transcript, command: RequestReservation) -> Refusal | None:
    if t.ledger.tenants[command.tenant_id].is_open:
        return None
    facts = {"kind": "tenant", "id": command.tenant_id, "state": "closed", "verb": "reserve"}
    return Refusal(Reason.WRONG_STATE, facts)


def _window(t: Transcript, command: RequestReservation, pool: Pool) -> Timespan | Refusal:
    """The window that is meant: a start of none, or of just now, means the present second."""
    start = t.second if command.start is None else command.start
    if command.until_released:
        return _first_term(t, command, pool, start)
    if (command.end is None) == (command.duration_seconds is None):
        problem = "give either the end or the duration"
        return refuse(Reason.WINDOW_INVALID, problem=problem)
    if command.end is not None:
        end = command.end
    else:
        duration = command.duration_seconds or 0
        if not 0 < duration <= pool.policy.window_seconds_max:
            return _too_long(pool, duration)
        end = Instant(start + seconds(duration))
    return _allowed(t, pool, Timespan(start, end))


def _first_term(
    t: Transcript, command: RequestReservation, pool: Pool, start: Instant
) -> Timespan | Refusal:
    """Without an end: the first term of the pool's policy."""
    if command.end is not None or command.duration_seconds is not None:
        problem = "what is booked until it is released has neither end nor duration"
        return refuse(Reason.WINDOW_INVALID, problem=problem)
    end = Instant(start + seconds(pool.policy.term_seconds))
    return _allowed(t, pool, Timespan(start, end))


def _allowed(t: Transcript, pool: Pool, span: Timespan) -> Timespan | Refusal:
    """The window, if the pool's policy allows it; a start of just now is the present second."""
    start, end = span.start, span.end
    if t.second - seconds(START_PAST_SECONDS_MAX) <= start < t.second:
        start = t.second
    span = Timespan(start, end)
    refusal = checks.whole_seconds(span)
    if refusal:
        return refusal
    if start < t.second:
        return refuse(Reason.WINDOW_INVALID, problem="the window starts in the past")
    if span.microseconds > seconds(pool.policy.window_seconds_max):
        return _too_long(pool, span.microseconds // seconds(1))
    if end > t.second + seconds(pool.policy.horizon_seconds):
        problem = f"the window ends beyond the horizon of {pool.policy.horizon_seconds} seconds"
        return refuse(Reason.WINDOW_INVALID, problem=problem)
    return span


def _too_long(pool: Pool, duration: int) -> Refusal:
    most = pool.policy.window_seconds_max
    problem = f"a window lasts 1 to {most} seconds, not {duration}"
    return refuse(Reason.WINDOW_INVALID, problem=problem)


def _size(command: RequestReservation, pool: Pool) -> Refusal | None:
    """Exactly one kind of size, and not a silly one."""
    size = command.size
    if min(size.gpus, size.nodes, size.share_milli) < 0:
        return refuse(Reason.SIZE_INVALID, problem="a size is not negative")
    if not (size.gpus or size.nodes or size.share_milli):
        return refuse(Reason.SIZE_INVALID, problem="a size is more than nothing")
    if size.share_milli and (size.gpus or size.nodes):
        return refuse(Reason.SIZE_INVALID, problem="a share stands alone, without GPUs or nodes")
    if size.share_milli >= MILLI_PER_GPU:
        problem = f"a share is 1 to {MILLI_PER_GPU - 1} thousandths of one GPU"
        return refuse(Reason.SIZE_INVALID, problem=problem)
    fleet = sum(gpus * nodes for (_, gpus), nodes in pool.kinds.items())
    asked = max(size.gpus, size.nodes)
    if asked > UNITS_MAX or size.gpus > fleet or size.nodes > len(pool.nodes):
        problem = f"the whole pool has {fleet} GPUs on {len(pool.nodes)} nodes"
        return refuse(Reason.SIZE_INVALID, problem=problem)
    return None


def _hold(command: RequestReservation, pool: Pool) -> Refusal | None:
    """A hold waits for a while that the pool allows; offers are looked for up to a number."""
    refusal = checks.between("offers_max", command.offers_max, 0, OFFERS_MAX)
    if refusal or command.hold_seconds is None:
        return refusal
    most = pool.policy.hold_seconds_max
    return checks.between("hold_seconds", command.hold_seconds, 1, most)


def _shape(command: RequestReservation, pool: Pool) -> Refusal | None:
    """The pool has such models and levels, and can hold what is asked."""
    shape = command.shape
    models = {model for model, _ in pool.kinds}
    if shape.models and not models.intersection(shape.models):
        problem = f"no node of this pool has a model of {', '.join(shape.models)}"
        return refuse(Reason.SHAPE_IMPOSSIBLE, problem=problem)
    if command.size.share_milli and not pool.policy.shares:
        grade = pool.policy.grade.value
        return refuse(Reason.NOT_ENFORCEABLE, grade=grade, problem="this pool sells no shares")
    if pool.policy.grade.value == "node" and (command.size.gpus or command.size.share_milli):
        problem = "this pool's connector holds whole nodes only"
        return refuse(Reason.NOT_ENFORCEABLE, grade="node", problem=problem)
    return None


def _tags(t: Transcript, command: RequestReservation, pool: Pool) -> Refusal | None:
    known = t.ledger.tenants[command.tenant_id].tags.keys() | command.tags.keys()
    for tag in pool.policy.required_tags:
        if tag not in known:
            return refuse(Reason.TAG_MISSING, tag=tag)
    return None

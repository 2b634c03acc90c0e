"""The lives of a reservation and of a node, as explicit tables of what may follow what."""

from collections.abc import Mapping
from enum import StrEnum


class ReservationState(StrEnum):
    """Where a reservation stands."""

    QUEUED = "queued"
    HELD = "held"
    CONFIRMED = "confirmed"
    AT_RISK = "at-risk"
    ACTIVE = "active"
    DEGRADED = "degraded"
    LEAVING = "leaving"
    REFUSED = "refused"
    LAPSED = "lapsed"
    CANCELLED = "cancelled"
    PREEMPTED = "preempted"
    GIVEN_BACK = "given-back"
    RELEASED = "released"
    ENDED = "ended"
    EXPIRED = "expired"


_R = ReservationState
RESERVATION_STEPS: Mapping[ReservationState, frozenset[ReservationState]] = {
    _R.QUEUED: frozenset({_R.HELD, _R.CONFIRMED, _R.REFUSED, _R.CANCELLED, _R.EXPIRED}),
    _R.HELD: frozenset({_R.CONFIRMED, _R.LAPSED, _R.CANCELLED}),
    _R.CONFIRMED: frozenset(
        {_R.AT_RISK, _R.ACTIVE, _R.DEGRADED, _R.CANCELLED, _R.PREEMPTED, _R.RELEASED}
    ),
    _R.AT_RISK: frozenset(
        {_R.CONFIRMED, _R.ACTIVE, _R.DEGRADED, _R.CANCELLED, _R.PREEMPTED, _R.RELEASED}
    ),
    _R.ACTIVE: frozenset(
        {_R.DEGRADED, _R.LEAVING, _R.ENDED, _R.GIVEN_BACK, _R.RELEASED, _R.PREEMPTED}
    ),
    _R.DEGRADED: frozenset(
        {_R.ACTIVE, _R.LEAVING, _R.ENDED, _R.GIVEN_BACK, _R.RELEASED, _R.PREEMPTED}
    ),
    _R.LEAVING: frozenset({_R.PREEMPTED, _R.ENDED, _R.GIVEN_BACK}),
    _R.REFUSED: frozenset(),
    _R.LAPSED: frozenset(),
    _R.CANCELLED: frozenset(),
    _R.PREEMPTED: frozenset(),
    _R.GIVEN_BACK: frozenset(),
    _R.RELEASED: frozenset(),
    _R.ENDED: frozenset(),
    _R.EXPIRED: frozenset(),
}

RUNNING = frozenset({_R.ACTIVE, _R.DEGRADED, _R.LEAVING})
"""The window is open and units are entitled to."""

UPCOMING = frozenset({_R.CONFIRMED, _R.AT_RISK})
"""Binding, and not started."""

SHORT = frozenset({_R.AT_RISK, _R.DEGRADED})
"""Units are missing, now or ahead."""

OVER = frozenset(state for state, after in RESERVATION_STEPS.items() if not after)
"""The ends: each reservation reaches one of them, once."""


class NodeState(StrEnum):
    """Where a node stands."""

    TESTING = "testing"
    READY = "ready"
    CORDONED = "cordoned"
    DRAINING = "draining"
    DRAINED = "drained"
    MAINTENANCE = "maintenance"
    REBOOTING = "rebooting"
    SUSPECTED = "suspected"
    FAILED = "failed"
    RETIRED = "retired"


_N = NodeState
NODE_STEPS: Mapping[NodeState, frozenset[NodeState]] = {
    _N.TESTING: frozenset({_N.READY, _N.REBOOTING, _N.SUSPECTED, _N.FAILED}),
    _N.READY: frozenset(
        {
            _N.CORDONED,
            _N.DRAINING,
            _N.MAINTENANCE,
            _N.REBOOTING,
            _N.SUSPECTED,
            _N.FAILED,
            _N.TESTING,
        }
    ),
    _N.CORDONED: frozenset(
        {
            _N.READY,
            _N.DRAINING,
            _N.MAINTENANCE,
            _N.REBOOTING,
            _N.SUSPECTED,
            _N.FAILED,
            _N.TESTING,
            _N.RETIRED,
        }
    ),
    _N.DRAINING: frozenset(
        {
            _N.DRAINED,
            _N.READY,
            _N.CORDONED,
            _N.MAINTENANCE,
            _N.REBOOTING,
            _N.SUSPECTED,
            _N.FAILED,
        }
    ),
    _N.DRAINED: frozenset(
        {
            _N.READY,
            _N.CORDONED,
            _N.MAINTENANCE,
            _N.REBOOTING,
            _N.SUSPECTED,
            _N.FAILED,
            _N.TESTING,
            _N.RETIRED,
        }
    ),
    _N.MAINTENANCE: frozenset({_N.READY, _N.TESTING, _N.FAILED}),
    _N.REBOOTING: frozenset(
        {_N.READY, _N.CORDONED, _N.DRAINING, _N.DRAINED, _N.TESTING, _N.SUSPECTED, _N.FAILED}
    ),
    _N.SUSPECTED: frozenset(
        {_N.READY, _N.CORDONED, _N.DRAINING, _N.DRAINED, _N.TESTING, _N.REBOOTING, _N.FAILED}
    ),
    _N.FAILED: frozenset({_N.READY, _N.TESTING, _N.RETIRED}),
    _N.RETIRED: frozenset(),
}

BOOKABLE = frozenset({_N.READY, _N.MAINTENANCE})
"""Nodes in these states take new holders; a maintenance holds its own span."""

AWAY = frozenset({_N.REBOOTING, _N.SUSPECTED})
"""Nodes in these states are waited for, each for the grace of its cause; holders keep their units."""

SERVING = frozenset({_N.READY, _N.CORDONED, _N.DRAINING, _N.SUSPECTED})
"""Nodes in these states serve the holders that they have."""

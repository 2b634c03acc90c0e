"""What happens by itself when its time has come: each timer as explicit facts."""

from domain.decide.failing import heal, tell_shortage
from domain.decide.health import fail_node, reboot_overdue
from domain.decide.nodes import end_maintenance
from domain.decide.renewing import renew
from domain.decide.reservations import end_reservation
from domain.decide.transcript import Transcript
from domain.facts.hardware import ReleasePresumed
from domain.facts.node import MaintenanceStarted
from domain.facts.quota import QuotaExpired
from domain.facts.reservation import (
    OverflowStarted,
    ReservationDegraded,
    ReservationEnded,
    ReservationHealed,
    ReservationLapsed,
    ReservationStarted,
)
from domain.ids import GrantId, MaintenanceId, NodeId, ReservationId
from domain.sizes import ReservationClass
from domain.states import OVER, RUNNING, UPCOMING, NodeState, ReservationState
from domain.timers import Due, Timer
from domain.timespan import Instant


def fire(t: Transcript, timer: Timer) -> None:
    """Write what a timer stands for, if its subject still wants it."""
    due, kind, subject = timer
    match kind:
        case Due.END:
            _end(t, ReservationId(subject), due)
        case Due.GIVE_WAY:
            _give_way(t, ReservationId(subject), due)
        case Due.LAPSE:
            _lapse(t, ReservationId(subject), due)
        case Due.START:
            _start(t, ReservationId(subject), due)
        case Due.RECHECK:
            _recheck(t, ReservationId(subject))
        case Due.MAINTENANCE_START:
            _start_maintenance(t, MaintenanceId(subject), due)
        case Due.MAINTENANCE_END:
            _end_maintenance(t, MaintenanceId(subject), due)
        case Due.NODE_GRACE:
            _fail_suspect(t, NodeId(subject), due)
        case Due.REBOOT_GRACE:
            _reboot_overdue(t, NodeId(subject), due)
        case Due.GRANT_END:
            _expire(t, GrantId(subject), due)
        case Due.PRESUME:
            _presume(t, ReservationId(subject))
        case Due.RENEW:
            renew(t, ReservationId(subject), due)


def _end(t: Transcript, reservation_id: ReservationId, due: Instant) -> None:
    found = t.ledger.reservations.get(reservation_id)
    if found is None or found.end != due or found.state in OVER or found.order_id:
        return
    if found.state is ReservationState.QUEUED:
        expired = ReservationEnded(found.id, ReservationState.EXPIRED.value, "window-over")
        t.write(expired, at=due)
    else:
        end_reservation(t, found, ReservationState.ENDED, "planned", due)


def _give_way(t: Transcript, reservation_id: ReservationId, due: Instant) -> None:
    found = t.ledger.reservations.get(reservation_id)
    if found is not None and found.order_id and found.end == due and found.state not in OVER:
        end_reservation(t, found, ReservationState.PREEMPTED, "preempted", due)


def _lapse(t: Transcript, reservation_id: ReservationId, due: Instant) -> None:
    found = t.ledger.reservations.get(reservation_id)
    if found is not None and found.state is ReservationState.HELD and found.until == due:
        t.write(ReservationLapsed(found.id), at=due)
        end_reservation(t, found, ReservationState.LAPSED, "hold-over", due)


def _start(t: Transcript, reservation_id: ReservationId, due: Instant) -> None:
    found = t.ledger.reservations.get(reservation_id)
    if found is None or found.state not in UPCOMING or found.start != due:
        return
    t.write(ReservationStarted(found.id), at=due)
    if found.klass is ReservationClass.OVERFLOW:
        t.write(OverflowStarted(found.id, found.milli), at=due)
    short = found.short_milli(due)
    if short > 0:
        t.write(ReservationDegraded(found.id, short), at=due)
        heal(t, t.ledger.pools[found.pool_id])


def _recheck(t: Transcript, reservation_id: ReservationId) -> None:
    """A span of shortage begins or ends inside a running window."""
    found = t.ledger.reservations.get(reservation_id)
    if found is None or found.state not in RUNNING or found.order_id:
        return
    if found.short_milli(t.second) > 0:
        tell_shortage(t, found)
        heal(t, t.ledger.pools[found.pool_id])
    elif found.state is ReservationState.DEGRADED:
        t.write(ReservationHealed(found.id))


def _start_maintenance(t: Transcript, maintenance_id: MaintenanceId, due: Instant) -> None:
    planned = t.ledger.maintenances.get(maintenance_id)
    if planned is not None and planned.start == due and not planned.started:
        t.write(MaintenanceStarted(planned.pool_id, planned.node_id, planned.id), at=due)


def _end_maintenance(t: Transcript, maintenance_id: MaintenanceId, due: Instant) -> None:
    planned = t.ledger.maintenances.get(maintenance_id)
    if planned is not None and planned.end == due:
        end_maintenance(t, planned)


def _fail_suspect(t: Transcript, node_id: NodeId, due: Instant) -> None:
    node = t.ledger.nodes.get(node_id)
    if node is not None and node.state is NodeState.SUSPECTED and node.grace_until == due:
        fail_node(t, node, "grace-over", due)


def _reboot_overdue(t: Transcript, node_id: NodeId, due: Instant) -> None:
    node = t.ledger.nodes.get(node_id)
    if node is not None and node.state is NodeState.REBOOTING and node.grace_until == due:
        reboot_overdue(t, node, due)


def _expire(t: Transcript, grant_id: GrantId, due: Instant) -> None:
    where = t.ledger.grants.get(grant_id)
    if where is not None and t.ledger.accounts[where].grants[grant_id].end == due:
        t.write(QuotaExpired(*where, grant_id), at=due)


def _presume(t: Transcript, reservation_id: ReservationId) -> None:
    """No word came of a release: it is taken as done at the planned instant."""
    found = t.ledger.reservations.get(reservation_id)
    had = t.ledger.possessions.get(reservation_id)
    if found is None or had is None:
        return
    for node_id, pieces in sorted(had.items()):
        pool_id = t.ledger.nodes[node_id].pool_id
        t.write(ReleasePresumed(pool_id, node_id, found.id, pieces), at=found.end)

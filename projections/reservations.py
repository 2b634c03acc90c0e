"""Reservations: one row each, with its state, its last reason and its ETag."""

from typing import NamedTuple

from domain.evolve import INTENT
from domain.facts import environment as e
from domain.facts import reservation as r
from domain.facts.fact import OfReservation
from domain.record import Recorded
from projections.table import Table


class ReservationRow(NamedTuple):
    """One reservation. Instants are microseconds since 1970 UTC, amounts thousandths of a GPU."""

    reservation_id: str
    tenant_id: str
    pool_id: str
    klass: str
    state: str
    gpus: int
    nodes: int
    share_milli: int
    milli: int
    short_milli: int
    start: int
    end: int
    until: int
    reason: str
    intent_version: int
    seq: int
    open_ended: int
    """1 when its term is renewed until it is released, else 0."""
    environment: str
    """Where its environment stood last while it ran; empty when it asked for none."""


class Reservations:
    """Where each reservation stands."""

    name = "reservations"
    version = 3

    def __init__(self) -> None:
        """Begin empty."""
        self.table = Table("reservation", ReservationRow, 1)
        self.tables: tuple[Table, ...] = (self.table,)

    def apply(self, recorded: Recorded) -> None:
        """Let a reservation's row follow its fact."""
        fact = recorded.fact
        if not isinstance(fact, OfReservation):
            return
        old = self.table.rows.get((fact.reservation_id,))
        if isinstance(fact, r.ReservationConfirmed | r.ReservationHeld | r.ReservationQueued):
            row = _first(fact)
        elif isinstance(old, ReservationRow):
            row = _next(old, fact)
        else:
            return
        if type(fact) in INTENT:
            row = row._replace(intent_version=recorded.stream_version)
        self.table.put(row._replace(seq=recorded.seq))
        if isinstance(fact, r.ReservationEnded):
            self.table.is_final((fact.reservation_id,))

    def settle(self) -> None:
        """Rows are always up to date."""


def _first(
    fact: r.ReservationConfirmed | r.ReservationHeld | r.ReservationQueued,
) -> ReservationRow:
    state, until, reason = "confirmed", 0, ""
    if isinstance(fact, r.ReservationHeld):
        state, until = "held", fact.until
    elif isinstance(fact, r.ReservationQueued):
        state, reason = "queued", fact.reason
    return ReservationRow(
        fact.reservation_id,
        fact.tenant_id,
        fact.pool_id,
        fact.klass.value,
        state,
        fact.size.gpus,
        fact.size.nodes,
        fact.size.share_milli,
        fact.milli,
        0,
        fact.start,
        fact.end,
        until,
        reason,
        0,
        0,
        0,
        "",
    )


def _next(row: ReservationRow, fact: OfReservation) -> ReservationRow:
    """The row after a fact."""
    match fact:
        case r.HoldConfirmed():
            return row._replace(state="confirmed", until=0)
        case r.ReservationStarted():
            return row._replace(state="active")
        case r.ReservationAtRisk(short_milli=short):
            return row._replace(state="at-risk", short_milli=short)
        case r.ReservationDegraded(short_milli=short):
            return row._replace(state="degraded", short_milli=short)
        case r.ReservationHealed():
            state = "confirmed" if row.state == "at-risk" else "active"
            return row._replace(state=state, short_milli=0)
        case r.ReservationExtended(end=end) | r.ReservationRenewed(end=end):
            return row._replace(end=end)
        case r.RenewalAgreed():
            return row._replace(open_ended=1)
        case r.RenewalStopped():
            return row._replace(open_ended=0)
        case e.EnvironmentRequested():
            return row._replace(environment="requested")
        case e.EnvironmentProvisioned():
            return row._replace(environment="provisioned")
        case e.EnvironmentAccepted():
            return row._replace(environment="ready")
        case e.EnvironmentFailed():
            return row._replace(environment="failed")
        case r.ReservationShrunk(size=size, milli=milli):
            return row._replace(
                gpus=size.gpus, nodes=size.nodes, share_milli=size.share_milli, milli=milli
            )
        case r.ReservationPreempted(at=at, reason=reason):
            state = "leaving" if row.state in {"active", "degraded"} else row.state
            return row._replace(end=at, state=state, reason=reason)
        case r.QueuedRefused(reason=reason):
            return row._replace(reason=reason)
        case r.ReservationEnded(state=state, reason=reason):
            return row._replace(state=state, reason=row.reason or reason)
        case _:
            return row

"""How the facts of environments change the ledger."""

from domain.environment import EnvironmentStage, EnvironmentState
from domain.evolve.fleet import heard
from domain.facts import environment as facts
from domain.ledger import Ledger
from domain.timespan import Instant

_Reported = (
    facts.EnvironmentProvisioned
    | facts.EnvironmentAccepted
    | facts.EnvironmentFailed
    | facts.EnvironmentTornDown
)

_STAGE: dict[type[_Reported], EnvironmentStage] = {
    facts.EnvironmentProvisioned: EnvironmentStage.PROVISIONED,
    facts.EnvironmentAccepted: EnvironmentStage.READY,
    facts.EnvironmentFailed: EnvironmentStage.FAILED,
    facts.EnvironmentTornDown: EnvironmentStage.TORN_DOWN,
}


def requested(ledger: Ledger, fact: facts.EnvironmentRequested, at: Instant) -> None:
    """An environment is to be set up when the window opens."""
    state = EnvironmentState(fact.environment, EnvironmentStage.REQUESTED)
    ledger.undo.set(ledger.reservations[fact.reservation_id], "environment", state)


def reported(ledger: Ledger, fact: _Reported, at: Instant) -> None:
    """An environment came to its next stage."""
    heard(ledger, fact.stamp)
    reservation = ledger.reservations[fact.reservation_id]
    assert reservation.environment is not None
    state = EnvironmentState(reservation.environment.asked, _STAGE[type(fact)])
    ledger.undo.set(reservation, "environment", state)


def wiped(ledger: Ledger, fact: facts.EnvironmentWiped, at: Instant) -> None:
    """A node is clean of it; that is for readers."""
    heard(ledger, fact.stamp)

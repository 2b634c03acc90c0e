"""The reconciler as a role: reads new facts, acts on the fleet, reports back, and again."""

import time
from collections.abc import Callable, Iterable, Sequence

import structlog

from connectors.reconciler.reconciler import Reconciler
from domain.commands import Command
from domain.ids import PrincipalId
from domain.principal import Principal, Role
from domain.record import Recorded
from domain.submission import CommandGateway, OutcomeKind, Submission
from domain.timespan import Instant
from schemas.registry import Registry

PRINCIPAL = Principal(PrincipalId("reconciler"), Role.SERVICE)
BATCH_FACTS_MAX = 1_000
PATIENCE_SECONDS = 0.2
RETRY_SECONDS = 1.0

Source = Callable[[int, int], Sequence[Recorded]]
"""Facts behind a position, at most so many."""

_log = structlog.get_logger("reconciler")


def submissions_of(
    commands: Iterable[Command], registry: Registry, at: Instant | None = None
) -> list[Submission]:
    """Reports as they go to the sequencer; a report's own stamp is its key."""
    found: list[Submission] = []
    for command in commands:
        contract, body = registry.encode(command)
        stamp = getattr(command, "stamp")  # noqa: B009 - every report has one
        key = f"{stamp.source}/{stamp.session}/{stamp.number}"
        found.append(Submission(PRINCIPAL, key, contract.type, body, at))
    return found


def run(
    reconciler: Reconciler,
    source: Source,
    gateway: CommandGateway,
    registry: Registry,
    after: int,
    stopped: Callable[[], bool],
) -> None:
    """Follow the log from a position on until told to stop."""
    waiting: list[Submission] = []
    while not stopped():
        facts = source(after, BATCH_FACTS_MAX)
        now = Instant(time.time_ns() // 1000)
        waiting += submissions_of(reconciler.step(facts, now), registry)
        after = facts[-1].seq if facts else after
        if waiting:
            waiting = _still_waiting(gateway, waiting)
            if waiting:
                _log.warning("reports_wait", count=len(waiting))
                time.sleep(RETRY_SECONDS)
        elif not facts:
            time.sleep(PATIENCE_SECONDS)


def _still_waiting(gateway: CommandGateway, waiting: list[Submission]) -> list[Submission]:
    """Reports that could not be taken in now; their stamps make sending them again harmless."""
    try:
        outcomes = gateway.submit(waiting)
    except ConnectionError as error:
        _log.warning("sequencer_away", error=str(error))
        return waiting
    return [
        submission
        for submission, outcome in zip(waiting, outcomes, strict=True)
        if outcome.kind is OutcomeKind.UNAVAILABLE
    ]

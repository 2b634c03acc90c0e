"""A thousand nodes of five thousand fail within a minute of virtual time, and come back.

After each step the promises are held against the ledger: nobody holds what another one holds, nothing
moves that did not fail, whoever lacks units is told so, and at the end everybody has all again.
"""

import time
from random import Random

from benchmarks.bookings import POOL, T0, TENANTS, fleet, submission
from benchmarks.figures import SEED, Figure, database, main
from connectors.postgres.journal import PostgresJournal
from connectors.sequencer.engine import Sequencer
from connectors.sequencer.opening import open_sequencer
from domain import commands as c
from domain.commands.node import Health
from domain.ids import NodeId, ReservationId, TenantId
from domain.reservation import Holding, Reservation
from domain.sizes import Size
from domain.states import SHORT
from domain.submission import OutcomeKind, Submission
from domain.timespan import MICROSECONDS, Instant
from schemas.registry import registry

NODES = 5_000
FAILURES = 1_000
TOGETHER = 20
"""Reports a batch: fifty batches in the virtual minute."""
RUNNING = 3_900
"""Reservations of a node, some of two: 86 % of the fleet is taken."""
GOAL_SECONDS = 60.0

Held = dict[ReservationId, frozenset[tuple[str, int]]]


def _booked(sequencer: Sequencer, random: Random) -> None:
    asks = [
        c.RequestReservation(
            TenantId(f"t{random.randrange(TENANTS)}"),
            POOL,
            Size(nodes=2) if n % 10 == 0 else Size(gpus=8),
            None,
            duration_seconds=86_400,
            offers_max=0,
        )
        for n in range(RUNNING)
    ]
    outcomes = sequencer.submit([submission(ask, f"run-{n}") for n, ask in enumerate(asks)])
    assert all(outcome.kind is OutcomeKind.ACCEPTED for outcome in outcomes)


def _report(node: str, health: Health, at: Instant) -> Submission:
    report = c.ReportHealth(POOL, health, "bench", NodeId(node), occurred_at=at)
    return submission(report, f"{health.value}-{node}", at)


def _tell(sequencer: Sequencer, nodes: list[str], health: Health, start: Instant) -> list[float]:
    """Report on nodes, spread over a virtual minute; the seconds that each batch took."""
    taken: list[float] = []
    step = 60 * MICROSECONDS * TOGETHER // len(nodes)
    for number, first in enumerate(range(0, len(nodes), TOGETHER)):
        at = Instant(start + number * step)
        batch = [_report(node, health, at) for node in nodes[first : first + TOGETHER]]
        begun = time.perf_counter()
        outcomes = sequencer.submit(batch)
        taken.append(time.perf_counter() - begun)
        assert all(outcome.kind is OutcomeKind.ACCEPTED for outcome in outcomes)
    return taken


def _held(sequencer: Sequencer, at: Instant) -> Held:
    return {
        r.id: frozenset((h.piece.node_id, s) for h in _now(r, at) for s in h.piece.slots)
        for r in sequencer.ledger.reservations.values()
    }


def _now(reservation: Reservation, at: Instant) -> list[Holding]:
    return [h for h in reservation.holdings if h.start <= at < h.end]


def _checked(sequencer: Sequencer, before: Held, down: set[str], at: Instant) -> int:
    """Hold the promises against the ledger; how many GPUs are lacking."""
    after = _held(sequencer, at)
    slots = [slot for held in after.values() for slot in held]
    assert len(slots) == len(set(slots)), "a GPU has two holders"
    assert not any(node in down for node, _ in slots), "a failed node has a holder"
    for reservation_id, had in before.items():
        kept = {slot for slot in had if slot[0] not in down}
        assert kept <= after[reservation_id], f"{reservation_id} moved off what did not fail"
    short = 0
    for r in sequencer.ledger.reservations.values():
        lacking = r.short_milli(at)
        assert (r.state in SHORT) is (lacking > 0), f"{r.id} is {r.state} and lacks {lacking}"
        short += lacking
    return short // 1000


def measure() -> list[Figure]:
    """Fail, check, recover, check."""
    random = Random(SEED)
    with database() as dsn:
        sequencer = open_sequencer(
            PostgresJournal(dsn), registry(), holder="bench", secret=b"bench", clock=None
        )
        sequencer.submit(fleet(NODES))
        _booked(sequencer, random)
        hit = random.sample([f"n{n:05}" for n in range(NODES)], FAILURES)
        before = _held(sequencer, T0)
        failed_at = Instant(T0 + 3_600 * MICROSECONDS)
        failing = _tell(sequencer, hit, Health.FAILED, failed_at)
        now = Instant(failed_at + 60 * MICROSECONDS)
        lacking = _checked(sequencer, before, set(hit), now)
        moved = sum(before[r] != held for r, held in _held(sequencer, now).items())
        back_at = Instant(now + 600 * MICROSECONDS)
        healing = _tell(sequencer, hit, Health.RECOVERED, back_at)
        left = _checked(sequencer, {}, set(), Instant(back_at + 60 * MICROSECONDS))
        assert left == 0, f"{left} GPUs are lacking although all nodes are back"
        failing.sort()
    return [
        Figure("failures-1000-of-5000-nodes", sum(failing), "s", GOAL_SECONDS, is_most=True),
        Figure("failures-batch-of-20-p99", failing[int(len(failing) * 0.99)] * 1e3, "ms"),
        Figure("failures-reservations-hit", moved, "reservations"),
        Figure("failures-gpus-lacking-meanwhile", lacking, "GPUs"),
        Figure("failures-return-and-healing", sum(healing), "s", GOAL_SECONDS, is_most=True),
        Figure("failures-gpus-lacking-at-last", left, "GPUs", 0, is_most=True),
    ]


if __name__ == "__main__":
    main(measure, __doc__ or "")

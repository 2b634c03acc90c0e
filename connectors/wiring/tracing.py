"""A trace through every layer: its own ledger in a folder, driven, projected, checked, reported."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from connectors.client.gateway import Gateway
from connectors.exports.assignments import assignments
from connectors.postgres.journal import JournalReader
from connectors.postgres.recorded import recorded
from connectors.reconciler.loop import submissions_of
from connectors.reconciler.reconciler import Reconciler
from connectors.running.files import Service
from connectors.simulated.fleet import Delays, SimulatedFleet
from connectors.traces.checking import books_balance, double_bookings
from connectors.traces.drive import TraceDriver
from connectors.traces.jobs import Trace, TraceNode
from connectors.traces.load import demand
from connectors.traces.planned import planned
from connectors.traces.report import Report
from domain.evolve import evolve
from domain.ledger import Ledger
from domain.merkle import Tree
from domain.pool_hours import STATES
from domain.record import Recorded
from domain.submission import Submission
from domain.timespan import FAR_FUTURE, Instant, Timespan
from projections.catalogue import all_projections
from projections.charges import by_account, originals
from projections.consumption import Consumption
from projections.projection import Projection, state_hash
from projections.rating import OUTSIDE, rate
from projections.reconciling import Verdict, books
from projections.table import Table
from projections.tariffs import Tariffs
from projections.usage import CapacityRow, Usage, UsageRow
from schemas.image import IMAGE_FORMAT, hash_of, image_of
from schemas.registry import registry

READY_SECONDS_MAX = 120
STOP_SECONDS_MAX = 60
WATCH_SECONDS = 0.5
DELAYS = Delays(apply_ms=2_000, free_ms=3_000)

Tell = Callable[[str], None]


@dataclass(slots=True)
class Parts:
    """The processes of a run."""

    sequencer: subprocess.Popen[bytes]
    follower: subprocess.Popen[bytes]
    peak_rss: int = 0

    def measure(self) -> None:
        """Note the resident memory of all of them together, and of this process."""
        total = 0
        for pid in (os.getpid(), self.sequencer.pid, self.follower.pid):
            try:
                total += psutil.Process(pid).memory_info().rss
            except psutil.NoSuchProcess:
                continue
        self.peak_rss = max(self.peak_rss, total)


@contextmanager
def ledger_of(folder: Path, service: Service) -> Iterator[Parts]:
    """A sequencer on a virtual clock and a follower, each a process."""
    command = [sys.executable, "-m", "connectors.cli", "--data", str(folder), "serve"]
    sequencer = subprocess.Popen([*command, "sequencer", "--virtual"])  # noqa: S603 - our own
    follower = subprocess.Popen([*command, "follower"])  # noqa: S603 - our own
    parts = Parts(sequencer, follower)
    try:
        _await(Path(service.socket), sequencer)
        yield parts
    finally:
        for process in (sequencer, follower):
            process.terminate()
        for process in (sequencer, follower):
            process.wait(STOP_SECONDS_MAX)


def _await(socket: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + READY_SECONDS_MAX
    while not socket.exists():
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError("the sequencer did not start")
        time.sleep(0.02)


class JournalTail:
    """What was recorded since it was last asked."""

    def __init__(self, dsn: str) -> None:
        """From the end of the log on."""
        self._reader = JournalReader(dsn)
        head = self._reader.head()
        self.seq = head.seq if head else 0

    def before(self) -> Iterator[Recorded]:
        """What was recorded before."""
        for event in self._reader.read_all(0):
            if event.seq <= self.seq:
                yield recorded(event, registry())

    def __call__(self) -> list[Recorded]:
        """New facts, in order."""
        found: list[Recorded] = []
        while chunk := self._reader.read(self.seq, 5_000):
            found += [recorded(event, registry()) for event in chunk]
            self.seq = chunk[-1].seq
        return found


def run_trace(
    folder: Path,
    service: Service,
    trace: Trace,
    nodes: Sequence[TraceNode],
    epoch: Instant,
    seed: int,
    progress: Callable[[int], None],
    tell: Tell,
    *,
    plans: bool = False,
) -> tuple[Report, list[tuple[int, dict[str, int]]]]:
    """Book a trace, let everything follow, and check it; the report and the chart's points."""
    begun = time.monotonic()
    report = Report(skipped=trace.skipped, malformed=trace.malformed, nodes_kept=len(nodes))
    wanted = demand(trace.jobs, max(node.gpus for node in nodes))
    report.mean_demand, report.peak_demand = wanted.mean, wanted.peak
    with ledger_of(folder, service) as parts:
        tell("booking")
        driver = _driver(service, epoch, seed)
        booking = time.monotonic()
        driver.prepare(trace, nodes, trace.jobs[0].start_s)

        def booked(count: int) -> None:
            parts.measure()
            progress(count)

        driver.book(trace.jobs, booked)
        seconds = time.monotonic() - booking
        tell("projecting")
        _caught_up(service.dsn, parts)
    tally = driver.tally
    report.requests, report.accepted, report.queued = tally.requests, tally.accepted, tally.queued
    report.refused = dict(sorted(tally.refused.items()))
    report.commands_per_s = tally.requests / seconds
    report.peak_rss_mib = parts.peak_rss / (1 << 20)
    tell("checking")
    points = _check(service.dsn, report)
    if plans:
        tell("planning all of it")
        report.plan = planned(trace.jobs, list(nodes), _booked(service.dsn))
    report.wall_s = time.monotonic() - begun
    return report, points


def _driver(service: Service, epoch: Instant, seed: int) -> TraceDriver:
    """A driver that goes on where an earlier run of the same folder stopped."""
    gateway = Gateway(Path(service.socket), patience=300.0)
    tail = JournalTail(service.dsn)
    fleet = SimulatedFleet(seed=seed, delays=DELAYS, session=str(tail.seq))
    reconciler = Reconciler(fleet, source="trace-fleet")
    reconciler.learn(tail.before())
    fleet.adopt(reconciler.given())

    def hardware(facts: Iterable[Recorded], now: Instant) -> list[Submission]:
        return submissions_of(reconciler.step(facts, now), registry(), now)

    return TraceDriver(registry(), epoch, gateway.submit, tail, hardware)


def _caught_up(dsn: str, parts: Parts) -> None:
    """Wait until every read model is at the head of the log."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        while True:
            row = connection.execute(
                "SELECT bool_and(p.seq = h.seq), bool_or(p.poison IS NOT NULL)"
                " FROM projection p, log_head h"
            ).fetchone()
            assert row is not None
            if row[1]:
                raise RuntimeError("a projection is poisoned")
            if row[0]:
                return
            if parts.follower.poll() is not None:
                raise RuntimeError("the follower ended")
            parts.measure()
            time.sleep(WATCH_SECONDS)


def _check(dsn: str, report: Report) -> list[tuple[int, dict[str, int]]]:
    """The three checks and the books; points of the chart by the way."""
    reader = JournalReader(dsn)
    head = reader.head()
    assert head is not None
    report.events = head.seq
    report.root_hash = Tree.from_bytes(head.tree).root.hex()
    with psycopg.connect(dsn, row_factory=dict_row) as connection:
        fresh = _Replay(reader)
        is_equal = fresh.is_equal(connection, report)
        usage = _all_rows(connection, fresh.usage.usage)
        capacity = _all_rows(connection, fresh.usage.capacity)
    totals = dict.fromkeys(STATES, 0)
    points: dict[int, dict[str, int]] = {}
    for row in usage:
        amount = int(row["gpu_microseconds"])
        totals[row["state"]] += amount
        point = points.setdefault(row["hour"], {})
        point[row["state"]] = point.get(row["state"], 0) + amount
    whole = sum(int(row["gpu_microseconds"]) for row in capacity)
    report.gpu_microseconds = {"capacity": whole, **totals}
    report.checks = {
        "double_bookings": double_bookings(assignments(dsn)),
        "books_balance": books_balance(usage, capacity),
        "replay_equal": is_equal,
        "charges_reconcile": _charge(fresh, usage, capacity, report),
    }
    return _buckets(sorted(points.items()))


def _booked(dsn: str) -> int:
    """What was held in the end, of whoever was admitted when it arrived: milli-GPU seconds."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            'SELECT coalesce(sum(width_milli::numeric * ("end" - start)), 0) FROM calendar'
        ).fetchone()
    assert row is not None
    return int(row[0]) // 1_000_000


def _charge(
    fresh: "_Replay", usage: list[dict[str, Any]], capacity: list[dict[str, Any]], report: Report
) -> bool:
    """Rate all of it; whether every delivered GPU-microsecond is charged, and the books balance."""
    charges = rate(fresh.lines, fresh.usage.terms)
    verdict = Verdict()
    books(
        (UsageRow(**_whole(row)) for row in usage),
        (CapacityRow(**_whole(row)) for row in capacity),
        fresh.lines,
        Tariffs(fresh.usage.terms),
        verdict,
    )
    rated = sum(c.gpu_microseconds for k, c in charges.items() if k.meter not in OUTSIDE)
    billed: dict[str, Decimal] = {}
    rows = 0
    everything = Timespan(Instant(0), FAR_FUTURE)
    for account_id, mine in by_account(charges).items():
        of_account = originals(mine, everything)
        billed[account_id] = sum((row.billed for row in of_account), Decimal(0))
        rows += len(of_account)
    difference = verdict.gpu_microseconds - rated
    report.charges = {
        "rows": rows,
        "gpu_microseconds": rated,
        "difference_gpu_microseconds": difference,
        "differences": verdict.differences,
        "billed_eur": {name: f"{amount:f}" for name, amount in billed.items()},
    }
    return verdict.holds and not difference and rows == len(charges)


def _whole(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose amount is an integer, as it was before it was stored."""
    return row | {"gpu_microseconds": int(row["gpu_microseconds"])}


class _Replay:
    """The whole log folded anew, by a ledger and by every read model."""

    def __init__(self, reader: JournalReader) -> None:
        self._reader = reader
        self.usage = Consumption()
        self._projections: list[Projection] = [
            self.usage if isinstance(p, Usage) else p for p in all_projections()
        ]
        self._ledger = Ledger(shard=reader.shard)
        last = Instant(0)
        for event in reader.read_all(0):
            entry = recorded(event, registry())
            evolve(self._ledger, entry.fact, entry.occurred_at)
            self._ledger.undo.forget()
            self._ledger.changes.clear()
            for projection in self._projections:
                projection.apply(entry)
            last = max(last, entry.occurred_at)
        self._hashes = {p.name: _hash(p) for p in self._projections}
        self.lines = self.usage.lines(last)

    def is_equal(self, connection: psycopg.Connection[Any], report: Report) -> bool:
        """Whether all of it is what the sequencer and the follower came to."""
        report.state_hash = hash_of(image_of(self._ledger)).hex()
        kept = self._reader.newest_snapshot(IMAGE_FORMAT)
        rows = connection.execute("SELECT name, hash FROM projection").fetchall()
        same_state = kept is not None and kept.seq == report.events
        same_state = same_state and kept is not None and kept.state_hash.hex() == report.state_hash
        return same_state and {row["name"]: row["hash"] for row in rows} == self._hashes


def _hash(projection: Projection) -> bytes:
    projection.settle()
    for table in projection.tables:
        table.drain()
    return state_hash(projection)


def _all_rows(connection: psycopg.Connection[Any], table: Table) -> list[dict[str, Any]]:
    """The rows that were written, and over them those that closing the books has added."""
    rows = connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(table.name)))
    found = {tuple(row.values())[: table.key_fields]: row for row in rows}
    for row in table:
        found[row[: table.key_fields]] = dict(zip(table.columns, row, strict=True))
    return list(found.values())


POINTS_MAX = 400


def _buckets(points: list[tuple[int, dict[str, int]]]) -> list[tuple[int, dict[str, int]]]:
    """Hours put together, so that a chart has at most so many steps."""
    size = -(-len(points) // POINTS_MAX) or 1
    found: list[tuple[int, dict[str, int]]] = []
    for first in range(0, len(points), size):
        sums: dict[str, int] = {}
        for _, states in points[first : first + size]:
            for state, amount in states.items():
                sums[state] = sums.get(state, 0) + amount
        found.append((points[first][0], sums))
    return found

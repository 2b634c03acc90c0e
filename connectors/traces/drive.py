"""Booking a trace through a ledger on a virtual clock, with its hardware in lockstep.

Commands go in order of their instants, in batches cut by count and by time. After each batch
the hardware hears what was recorded, and what it reports goes in front of the next batch.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from connectors.traces.jobs import Trace, TraceJob, TraceNode
from connectors.traces.load import fleet_gpus
from domain.commands import (
    Command,
    GrantQuota,
    JoinNode,
    OpenPool,
    PublishPriceBook,
    RegisterTenant,
)
from domain.commands.reservation import RequestReservation
from domain.facts.node import LevelGroup
from domain.ids import NodeId, PoolId, PrincipalId, TenantId
from domain.policy import PoolPolicy
from domain.pricing import Rate, SkuMeter
from domain.principal import Principal, Role
from domain.record import Recorded
from domain.sizes import Shape
from domain.submission import TICK, Outcome, OutcomeKind, Submission
from domain.timespan import MICROSECONDS, Instant
from domain.units import MILLI_PER_GPU
from schemas.registry import Registry

POOL = PoolId("trace")
OPERATOR = Principal(PrincipalId("trace"), Role.OPERATOR)
BATCH_COMMANDS_MAX = 512
BATCH_SECONDS_MAX = 12 * 3600
ACK_GRACE_SECONDS = 24 * 3600
RATES = (
    Rate(SkuMeter.RESERVED_USED, "2.00"),
    Rate(SkuMeter.RESERVED_UNUSED, "2.00"),
    Rate(SkuMeter.BORROWED, "1.20"),
    Rate(SkuMeter.OVERFLOW, "3.10"),
)
"""What an hour of a GPU costs in a trace, in EUR, whatever its model."""
YEARS_SECONDS = 10 * 366 * 86_400
HARDWARE_SECONDS = 60
"""How long after the last end the hardware is listened to."""

Submit = Callable[[Sequence[Submission]], Sequence[Outcome]]
Facts = Callable[[], Sequence[Recorded]]
Hardware = Callable[[Iterable[Recorded], Instant], list[Submission]]


@dataclass(slots=True)
class Tally:
    """What the requests of a trace came to."""

    requests: int = 0
    accepted: int = 0
    queued: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def count(self, outcome: Outcome) -> None:
        """One outcome of a request."""
        self.requests += 1
        if outcome.kind is OutcomeKind.ACCEPTED:
            is_queued = outcome.facts[-1].type.startswith("ReservationQueued.")
            self.queued += is_queued
            self.accepted += not is_queued
        elif outcome.refusal is not None:
            self.refused[outcome.refusal.reason.code] += 1
        else:
            self.refused[outcome.kind.value] += 1


class TraceDriver:
    """One run of a trace."""

    def __init__(
        self,
        registry: Registry,
        epoch: Instant,
        submit: Submit,
        facts: Facts,
        hardware: Hardware,
    ) -> None:
        """`facts` gives what was recorded since it was last asked."""
        self._registry = registry
        self._epoch = epoch
        self._submit = submit
        self._facts = facts
        self._hardware = hardware
        self.tally = Tally()

    def at(self, second: int) -> Instant:
        """A second of the trace as an instant."""
        return Instant(self._epoch + second * MICROSECONDS)

    def _submission(self, key: str, command: Command, at: Instant) -> Submission:
        contract, body = self._registry.encode(command)
        return Submission(OPERATOR, key, contract.type, body, at)

    def prepare(self, trace: Trace, nodes: Sequence[TraceNode], first: int) -> None:
        """The fleet as one pool, and each tenant with the whole pool as its quota."""
        policy = PoolPolicy(
            horizon_seconds=YEARS_SECONDS,
            window_seconds_max=YEARS_SECONDS,
            ack_grace_seconds=ACK_GRACE_SECONDS,
        )
        commands: list[Command] = [OpenPool(POOL, "trace", policy)]
        for node in nodes:
            levels = (LevelGroup("block", node.block),) if node.block else ()
            name = NodeId(node.name)
            commands.append(
                JoinNode(
                    POOL,
                    name,
                    node.model,
                    node.gpus,
                    0,
                    node.cpu_milli,
                    node.memory_mib,
                    "",
                    levels,
                )
            )
        commands.append(PublishPriceBook("trace", "EUR", Instant(0), RATES))
        nominal = fleet_gpus(list(nodes)) * MILLI_PER_GPU
        for tenant in sorted({job.tenant for job in trace.jobs}):
            commands.append(RegisterTenant(TenantId(tenant)))
            commands.append(GrantQuota(TenantId(tenant), POOL, nominal))
        at = self.at(first)
        outcomes = self._submit(
            [self._submission(f"set-up-{n}", command, at) for n, command in enumerate(commands)]
        )
        for command, outcome in zip(commands, outcomes, strict=True):
            if outcome.kind not in {OutcomeKind.ACCEPTED, OutcomeKind.NO_EFFECT}:
                raise RuntimeError(f"{command} was not accepted: {outcome}")
        self._hardware(self._facts(), at)

    def book(self, jobs: Sequence[TraceJob], progress: Callable[[int], None]) -> None:
        """Ask for each job's window at its start."""
        reports: list[Submission] = []
        for batch in _batches(jobs):
            requests = [self._request(job) for job in batch]
            outcomes = self._submit(reports + requests)
            for outcome in outcomes[len(reports) :]:
                self.tally.count(outcome)
            now = self.at(batch[-1].start_s)
            reports = self._hardware(self._facts(), now)
            progress(len(batch))
        self._finish(reports, max(job.end_s for job in jobs))

    def _request(self, job: TraceJob) -> Submission:
        command = RequestReservation(
            TenantId(job.tenant),
            POOL,
            job.size,
            self.at(job.start_s),
            self.at(job.end_s),
            klass=job.klass,
            shape=Shape(models=job.models),
            offers_max=0,
        )
        return self._submission(f"{job.name}@{job.start_s}", command, self.at(job.start_s))

    def _finish(self, reports: list[Submission], last: int) -> None:
        """Let time go on until every window has closed and the hardware has said so."""
        at = self.at(last + HARDWARE_SECONDS)
        while True:
            self._submit([*reports, Submission(OPERATOR, "tick", TICK, b"", at)])
            reports = self._hardware(self._facts(), at)
            if not reports:
                return


def _batches(jobs: Sequence[TraceJob]) -> Iterator[list[TraceJob]]:
    batch: list[TraceJob] = []
    for job in jobs:
        full = len(batch) == BATCH_COMMANDS_MAX
        if batch and (full or job.start_s - batch[0].start_s > BATCH_SECONDS_MAX):
            yield batch
            batch = []
        batch.append(job)
    if batch:
        yield batch

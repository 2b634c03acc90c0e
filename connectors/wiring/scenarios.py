"""Stages for scenarios: a ledger in memory, the real one over PostgreSQL, or a whole service."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from connectors.memory.journal import MemoryJournal, MemoryStore
from connectors.postgres.journal import PostgresJournal
from connectors.postgres.recorded import recorded
from connectors.reconciler.loop import submissions_of
from connectors.reconciler.reconciler import Reconciler
from connectors.scenarios.reading import Scenario, read_scenario
from connectors.scenarios.telling import Hardware, Stage, Teller, Told, principals_of
from connectors.sequencer.opening import open_sequencer, restore
from connectors.simulated.fleet import Delays, Fault, SimulatedFleet
from connectors.simulated.provisioner import Pace, SimulatedProvisioner
from connectors.wiring.service_stage import FACES, service_stage
from connectors.wiring.stores import scratch
from domain.commands.node import Health
from domain.environment import Orchestrator
from domain.ids import NodeId
from domain.journal import Journal
from domain.ledger import Ledger
from domain.record import Recorded
from domain.submission import Outcome, Submission
from domain.timespan import Instant
from schemas.image import image_of
from schemas.registry import registry

STAGES = ("memory", "postgresql", *FACES)
"""Where a story may be told."""
SECRET = b"scenarios have no secrets"


class LedgerStage:
    """The sequencer over some journal, under a virtual clock."""

    def __init__(self, journal: Callable[[], Journal]) -> None:
        """Each call of `journal` is a new writer over the same store."""
        self._journal = journal
        self._seq = 0
        self.restart()

    def restart(self) -> None:
        """Another writer takes over, as after a crash."""
        self._sequencer = open_sequencer(
            self._journal(), registry(), holder="scenario", secret=SECRET, clock=None
        )

    def submit(self, submissions: Sequence[Submission]) -> Sequence[Outcome]:
        """Durable outcomes."""
        return self._sequencer.submit(submissions)

    def new_facts(self) -> list[Recorded]:
        """What was recorded since it was last asked."""
        found = [recorded(e, registry()) for e in self._sequencer.journal.read_all(self._seq)]
        self._seq += len(found)
        return found

    def next_due(self) -> Instant | None:
        """When something falls due by itself."""
        return self._sequencer.next_due()

    def close(self) -> None:
        """Let go of the store."""
        close = getattr(self._sequencer.journal, "close", None)
        if close is not None:
            close()

    def ledger(self) -> Ledger:
        """The state as the writer has it."""
        return self._sequencer.ledger

    def is_replayable(self) -> bool:
        """Whether a replay of the log ends in the same bytes."""
        ledger, _ = restore(self._sequencer.journal, registry(), 0)
        return image_of(ledger) == image_of(self._sequencer.ledger)


def memory_stage() -> LedgerStage:
    """A ledger in memory."""
    store = MemoryStore()
    return LedgerStage(lambda: MemoryJournal(store))


def postgres_stage(dsn: str) -> LedgerStage:
    """The real ledger, over an empty database that has been migrated."""
    journals: list[PostgresJournal] = []

    def fresh() -> PostgresJournal:
        for former in journals:
            former.release_lease()
            former.close()
        journals[:] = [PostgresJournal(dsn)]
        return journals[0]

    return LedgerStage(fresh)


def tell_file(
    file: Path,
    stage: LedgerStage,
    listener: Callable[[int, list[str]], None] | None = None,
) -> Told:
    """Tell the story of a file on a stage. Raises `ScenarioWrong`."""
    return _tell(read_scenario(file), stage, listener)


def tell_to_service(file: Path, folder: Path, dsn: str, face: str) -> Told:
    """Tell the story of a file to a service of its own, by a face of `FACES`, in an empty folder.

    Raises `ScenarioWrong`.
    """
    scenario = read_scenario(file)
    with service_stage(folder, dsn, principals_of(scenario), face) as stage:
        return _tell(scenario, stage, None)


def tell_on(file: Path, stage: str) -> Told:
    """Tell the story of a file on one of `STAGES`, on stores of its own. Raises `ScenarioWrong`."""
    if stage == "memory":
        return tell_file(file, memory_stage())
    with (
        TemporaryDirectory(prefix="gpuledger-") as database,
        TemporaryDirectory(prefix="gpuledger-") as folder,
        scratch(Path(database), secrets.token_hex(8)) as dsn,
    ):
        if stage in FACES:
            return tell_to_service(file, Path(folder), dsn, stage)
        with closing(postgres_stage(dsn)) as ledger:
            return tell_file(file, ledger)


class Replayable(Stage, Protocol):
    """A stage whose log can be replayed."""

    def is_replayable(self) -> bool:
        """Whether a replay of the log ends in the same bytes."""
        ...


def _tell(
    scenario: Scenario, stage: Replayable, listener: Callable[[int, list[str]], None] | None
) -> Told:
    told = Teller(scenario, stage, registry(), _hardware(scenario), listener).tell()
    if not stage.is_replayable():
        raise scenario.wrong(len(scenario.steps) - 1, "a replay ends in another state")
    return told


class SimulatedHardware:
    """A simulated fleet and its reconciler, for one story."""

    def __init__(self, fleet: SimulatedFleet, provisioner: SimulatedProvisioner) -> None:
        """Keep a fleet in step."""
        self._fleet = fleet
        self._provisioner = provisioner
        self._reconciler = Reconciler(fleet, "scenario-fleet", provisioner=provisioner)

    def act(self, facts: Sequence[Recorded], now: Instant) -> list[Submission]:
        """What it reports after hearing facts."""
        return submissions_of(self._reconciler.step(facts, now), registry(), now)

    def next_at(self) -> Instant | None:
        """When it has something to do or to tell."""
        stops = (
            self._reconciler.next_due(),
            self._fleet.next_observation(),
            self._provisioner.next_observation(),
        )
        return min((stop for stop in stops if stop is not None), default=None)


def _hardware(scenario: Scenario) -> Hardware | None:
    values = scenario.values.get("hardware")
    if values is None:
        return None
    delays = Delays(
        values.get("apply_ms", 0), values.get("free_ms", 0), test_ms=values.get("test_ms", 0)
    )
    faults = tuple(_fault(scenario, fault) for fault in values.get("faults", ()))
    failing = {NodeId(node): checks for node, checks in values.get("failing", {}).items()}
    fleet = SimulatedFleet(values.get("seed", 0), delays, faults, failing=failing)
    pace = Pace(*(values.get(name, 0) for name in ("provision_ms", "tear_down_ms", "wipe_ms")))
    failing_orchestrators = tuple(map(Orchestrator, values.get("failing_environments", ())))
    return SimulatedHardware(fleet, SimulatedProvisioner(pace, failing_orchestrators))


def _fault(scenario: Scenario, values: Mapping[str, Any]) -> Fault:
    """What happens to a node by itself, as the story has it."""
    return Fault(
        scenario.instant(values["at"]),
        NodeId(values["node"]),
        Health(values["health"]),
        values.get("cause", "fault"),
        tuple(values.get("slots", ())),
        values.get("boot_id", ""),
    )

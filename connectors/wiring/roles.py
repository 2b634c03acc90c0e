"""The roles of a service, put together from their parts."""

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog
import uvicorn

from connectors.client.gateway import AsyncGateway, Gateway
from connectors.embedded.folder import read_secret
from connectors.http.app import create_app
from connectors.http.reading import ReadModels
from connectors.keys.subjects import Subjects
from connectors.keys.subjects import forget as forget_subject
from connectors.planner.planner import run as run_planner
from connectors.postgres.journal import JournalReader, PostgresJournal
from connectors.postgres.projecting import Follower
from connectors.postgres.read_models import CheckpointMoved, is_waiting
from connectors.postgres.rebuilding import outdated
from connectors.postgres.rebuilding import rebuild as rebuild_projection
from connectors.postgres.recorded import recorded
from connectors.reconciler.loop import run as run_reconciler
from connectors.reconciler.reconciler import Reconciler
from connectors.running.files import Service
from connectors.sequencer.clock import ClockGuard, WallClock
from connectors.sequencer.opening import open_sequencer, restore
from connectors.sequencer.server import (
    SequencerServer,
    serve_until_signalled,
    settle_memory,
)
from connectors.simulated.fleet import Delays, SimulatedFleet
from connectors.simulated.provisioner import Pace, SimulatedProvisioner
from connectors.tokens.tokens import TokenFile
from connectors.wiring.copying import LedgerCopy
from connectors.wiring.proving import SIGNING, LogProver, signer_of
from connectors.wiring.replaying import LogHistory
from domain.record import Recorded
from projections.catalogue import all_projections
from schemas.registry import registry
from solvers.placement.index import warm_up

SIMULATED_DELAYS = Delays(apply_ms=800, free_ms=1_200, spread_ms=400, test_ms=2_000)
SIMULATED_PACE = Pace(provision_ms=3_000, tear_down_ms=500, wipe_ms=1_500)


def serve_sequencer(service: Service, secret: bytes, *, virtual: bool) -> int:
    """The one writer, until told to stop; its exit status."""
    warm_up()
    guard = None if virtual else ClockGuard(WallClock().now)
    sequencer = open_sequencer(
        PostgresJournal(service.dsn),
        registry(),
        holder=f"{os.uname().nodename}/{os.getpid()}",
        secret=secret,
        clock=guard.now if guard else None,
    )
    server = SequencerServer(sequencer, Path(service.socket), guard)
    return serve_until_signalled(server, lambda: None)


def until_signalled() -> Callable[[], bool]:
    """Whether a signal to stop has come since."""
    stopped = [False]

    def stop(*_: object) -> None:
        stopped[0] = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return lambda: stopped[0]


def serve_follower(service: Service) -> int:
    """The read models and the snapshots, until told to stop."""
    stopped = until_signalled()
    while not stopped():
        for projection in outdated(service.dsn, all_projections()):
            rebuild_projection(service.dsn, registry(), projection)
        follower = Follower(
            service.dsn, registry(), all_projections(), forget_subject=forget_subject
        )
        settle_memory()
        try:
            follower.run(stopped)
        except CheckpointMoved as error:
            structlog.get_logger("follower").info("follower_begins_anew", why=str(error))
        finally:
            follower.close()
    return 0


def source_of(reader: JournalReader) -> Callable[[int, int], Sequence[Recorded]]:
    """Facts behind a position, as readers get them."""
    return lambda after, limit: [recorded(e, registry()) for e in reader.read(after, limit)]


def serve_reconciler(service: Service) -> int:
    """The simulated fleet and what keeps it in step, until told to stop."""
    stopped = until_signalled()
    reader = JournalReader(service.dsn)
    fleet = SimulatedFleet(delays=SIMULATED_DELAYS, session=f"{os.getpid()}-{WallClock().now()}")
    reconciler = Reconciler(fleet, provisioner=SimulatedProvisioner(SIMULATED_PACE))
    after = 0
    for event in reader.read_all(0):
        reconciler.learn([recorded(event, registry())])
        after = event.seq
    fleet.adopt(reconciler.given())
    gateway = Gateway(Path(service.socket))
    run_reconciler(reconciler, source_of(reader), gateway, registry(), after, stopped)
    return 0


def serve_planner(service: Service) -> int:
    """Plans for what waits, until told to stop."""
    stopped = until_signalled()
    reader = JournalReader(service.dsn)
    gateway = Gateway(Path(service.socket))

    run_planner(
        lambda: restore(reader, registry(), 0),
        lambda: is_waiting(service.dsn),
        gateway,
        registry(),
        WallClock().now,
        stopped,
    )
    return 0


def serve_http(
    service: Service, folder: Path, host: str = "127.0.0.1", *, virtual: bool = False
) -> int:
    """The HTTP face over a data folder, until told to stop."""
    models = ReadModels.of(service.dsn)
    app = create_app(
        AsyncGateway(Path(service.socket)),
        models,
        TokenFile(folder / "tokens.json"),
        registry(),
        Subjects(models.pool),
        LedgerCopy(JournalReader(service.dsn), None if virtual else WallClock().now),
        LogProver(service.dsn, signer_of(read_secret(folder, SIGNING))),
        LogHistory(service.dsn),
        is_virtual=virtual,
    )
    uvicorn.run(
        app,
        host=host,
        port=int(service.url.rsplit(":", 1)[1]),
        log_level="warning",
        access_log=False,
        loop="uvloop",
        http="httptools",
    )
    return 0

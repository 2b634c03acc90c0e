"""Verifying a history: in its database, in a folder by us, and by the file that shares nothing with us.

The raw limit is hashing the same leaves into the tree, and nothing else.
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog

from benchmarks.bookings import T0
from benchmarks.brokers import grown
from benchmarks.figures import Figure, database, main
from connectors.exports.history import read_history
from connectors.wiring.auditing import export_history, verify_folder, verify_log
from connectors.wiring.proving import signer_of
from connectors.wiring.replaying import LogHistory
from domain.merkle import Tree
from domain.timespan import MICROSECONDS, Instant
from schemas.envelope import leaf_of

EVENTS = 40_000
DAY, DAYS = 86_400 * MICROSECONDS, 10
GOAL = 50_000
REPLAY_GOAL = 10_000_000 / 900
STRANGER = Path(__file__).parent.parent / "docs" / "verify.py"


def measure() -> Sequence[Figure]:
    """Events a second, each way."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    signer = signer_of(b"k" * 32)
    with database() as dsn, TemporaryDirectory() as name:
        count = grown(dsn, EVENTS)
        folder = Path(name) / "history"
        rates: dict[str, float] = {}

        def timed(what: str, begun: float) -> None:
            rates[what] = count / (time.perf_counter() - begun)

        begun = time.perf_counter()
        export_history(dsn, folder, signer, lambda _, __: None)
        timed("export", begun)
        rows = list(read_history(folder))
        begun = time.perf_counter()
        Tree().grown([leaf_of(*row) for row in rows])
        timed("raw", begun)
        begun = time.perf_counter()
        assert verify_log(dsn, None).holds
        timed("log", begun)
        begun = time.perf_counter()
        assert verify_folder(folder, None, signer.key.text()).holds
        timed("folder", begun)
        begun = time.perf_counter()
        command = [sys.executable, "-I", str(STRANGER), str(folder), "--key", signer.key.text()]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        timed("stranger", begun)
        begun = time.perf_counter()
        LogHistory(dsn).replay(Instant(T0 + DAYS * DAY), None)
        timed("replay", begun)
    raw = rates["raw"]
    return [
        Figure("verify.log", rates["log"], "events/s", GOAL, raw),
        Figure("verify.folder", rates["folder"], "events/s", GOAL, raw),
        Figure("verify.stranger", rates["stranger"], "events/s", None, raw),
        Figure("verify.export", rates["export"], "events/s"),
        Figure("replay.moment", rates["replay"], "events/s", REPLAY_GOAL),
        Figure("verify.events", count, "events"),
    ]


if __name__ == "__main__":
    main(measure, __doc__ or "")

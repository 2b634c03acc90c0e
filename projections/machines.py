"""Machines as the books of unit-seconds see them: GPUs, and runs of them in somebody's hands."""

from dataclasses import dataclass, field

from domain.ids import ReservationId
from domain.units import Piece


@dataclass(slots=True)
class Run:
    """A run of one GPU in one holder's hands, or nobody's."""

    first: int
    end: int
    holder: ReservationId | None = None
    tenant: str = ""
    state: str = "idle"


@dataclass(slots=True)
class Gpu:
    """One GPU: its runs, and what overrules them: its own failure or its node's condition."""

    pool_id: str
    model: str
    runs: list[Run]
    is_failed: bool = False


@dataclass(slots=True)
class Machine:
    """A node: its GPUs, and what overrules all of them."""

    gpus: list[Gpu]
    condition: str = ""
    """`down`, `maintenance` or `service` while the whole node is; empty while it serves."""
    possessed: dict[ReservationId, tuple[Piece, ...]] = field(default_factory=dict)


def join_idle(gpu: Gpu) -> None:
    """Let free neighbours be one run again."""
    joined: list[Run] = []
    for run in gpu.runs:
        if joined and run.holder is None and joined[-1].holder is None:
            joined[-1].end = run.end
        else:
            joined.append(run)
    gpu.runs = joined


def cut_runs(gpu: Gpu, at: int) -> None:
    """Cut the run in whose middle a border lies."""
    for number, run in enumerate(gpu.runs):
        if run.first < at < run.end:
            right = Run(at, run.end, run.holder, run.tenant, run.state)
            run.end = at
            gpu.runs.insert(number + 1, right)
            return

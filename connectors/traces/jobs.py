"""What every trace comes to: nodes and jobs, and the rows that were no jobs."""

from dataclasses import dataclass, field
from enum import StrEnum

from domain.sizes import ReservationClass, Size
from domain.units import MILLI_PER_GPU


class OnError(StrEnum):
    """What a malformed row does: stop the whole import, or be counted."""

    STOP = "stop"
    SKIP = "skip"


class TraceRefused(Exception):
    """A file that cannot be read as what it should be: file, line, column, and why."""


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A machine of a trace."""

    name: str
    gpus: int
    model: str
    cpu_milli: int = 0
    memory_mib: int = 0
    block: str = ""


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A job of a trace: seconds are those of the trace."""

    name: str
    tenant: str
    start_s: int
    end_s: int
    size: Size
    models: tuple[str, ...] = ()
    klass: ReservationClass = ReservationClass.GUARANTEED

    def milli(self, node_gpus: int) -> int:
        """How much it asks for, in thousandths of a GPU."""
        gpus = self.size.gpus + self.size.nodes * node_gpus
        return gpus * MILLI_PER_GPU + self.size.share_milli


@dataclass(slots=True)
class Trace:
    """Jobs in the order of their start, and how many rows were none."""

    jobs: list[TraceJob] = field(default_factory=list)
    nodes: list[TraceNode] = field(default_factory=list)
    malformed: int = 0
    skipped: int = 0
    complaints: list[str] = field(default_factory=list)
    """The first malformed rows, in words."""


COMPLAINTS_MAX = 20


@dataclass(slots=True)
class Rows:
    """Collects the jobs of one file, row by row."""

    file: str
    on_error: OnError
    trace: Trace = field(default_factory=Trace)

    def bad(self, line: int, column: str, why: str) -> None:
        """A row that is no job. Raises `TraceRefused` when the import is to stop."""
        words = f"{self.file}, line {line}, column {column}: {why}"
        if self.on_error is OnError.STOP:
            raise TraceRefused(words)
        self.trace.malformed += 1
        if len(self.trace.complaints) < COMPLAINTS_MAX:
            self.trace.complaints.append(words)

    def malformed(self, line: int, column: str, why: str) -> None:
        """A row whose times make no window: always counted, never a reason to stop."""
        self.trace.malformed += 1
        if len(self.trace.complaints) < COMPLAINTS_MAX:
            self.trace.complaints.append(f"{self.file}, line {line}, column {column}: {why}")

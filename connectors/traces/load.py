"""Shaping a trace to a load: arrivals squeezed, then the fleet thinned; and what it demands."""

from dataclasses import dataclass, replace
from hashlib import sha256

from connectors.traces.jobs import Trace, TraceJob, TraceNode
from domain.units import MILLI_PER_GPU


@dataclass(frozen=True, slots=True)
class Demand:
    """GPUs asked for at once over the arrival span: in the mean, and at most."""

    mean: float
    peak: float


def fleet_gpus(nodes: list[TraceNode]) -> int:
    """All GPUs of a fleet."""
    return sum(node.gpus for node in nodes)


def demand(jobs: list[TraceJob], node_gpus: int) -> Demand:
    """What jobs would hold at once if all were granted, over the span in which they arrive."""
    if not jobs:
        return Demand(0.0, 0.0)
    first, last = jobs[0].start_s, max(jobs[-1].start_s, jobs[0].start_s + 1)
    steps: dict[int, int] = {}
    for job in jobs:
        milli = job.milli(node_gpus)
        steps[job.start_s] = steps.get(job.start_s, 0) + milli
        steps[job.end_s] = steps.get(job.end_s, 0) - milli
    level = peak = total = 0
    before = first
    for at in sorted(steps):
        here = min(at, last)
        total += level * (here - before)
        before = here
        level += steps[at]
        if at <= last:
            peak = max(peak, level)
    return Demand(total / (last - first) / MILLI_PER_GPU, peak / MILLI_PER_GPU)


def squeeze(jobs: list[TraceJob], nodes: list[TraceNode], load: float) -> list[TraceJob]:
    """Arrivals closer together, until offered GPU-seconds / (fleet x arrival span) is the load.

    Durations stay. A trace that offers more already is left as it is.
    """
    node_gpus = max(node.gpus for node in nodes)
    span = jobs[-1].start_s - jobs[0].start_s
    offered = sum(j.milli(node_gpus) * (j.end_s - j.start_s) for j in jobs) / MILLI_PER_GPU
    wanted = offered / (load * fleet_gpus(nodes))
    if span <= 0 or wanted >= span:
        return jobs
    first = jobs[0].start_s
    squeezed: list[TraceJob] = []
    for job in jobs:
        start = first + int((job.start_s - first) * wanted / span)
        squeezed.append(replace(job, start_s=start, end_s=start + job.end_s - job.start_s))
    return sorted(squeezed, key=lambda job: (job.start_s, job.name))


def thin(nodes: list[TraceNode], mean_demand: float, load: float) -> list[TraceNode]:
    """Fewer nodes, by the hash of their names, until the mean demand is the load of what is left."""
    kept = sorted(nodes, key=lambda node: sha256(node.name.encode()).digest())
    gpus = fleet_gpus(kept)
    while len(kept) > 1 and mean_demand < load * gpus:
        gpus -= kept.pop().gpus
    names = {node.name for node in kept}
    return [node for node in nodes if node.name in names]


def shape(
    trace: Trace, nodes: list[TraceNode], load: float | None
) -> tuple[Trace, list[TraceNode]]:
    """A trace and a fleet brought to a load; as they are when none is named."""
    if load is None or not trace.jobs:
        return trace, nodes
    node_gpus = max(node.gpus for node in nodes)
    jobs = squeeze(trace.jobs, nodes, load)
    kept = thin(nodes, demand(jobs, node_gpus).mean, load)
    return replace(trace, jobs=jobs), kept

"""A trace as one planning instance, and what a plan of all of it comes to beside its bookings.

A machine of a trace whose jobs share GPUs becomes a rack of GPUs, each a node of 250 parts: a
share is parts of one GPU and of no other tenant's, several GPUs are several nodes of one rack.
Otherwise a machine is a node, and sizes above one become whole nodes.
"""

import time
from collections import Counter
from typing import Any

from connectors.traces.jobs import TraceJob, TraceNode, TraceRefused
from domain.units import MILLI_PER_GPU
from solvers.planning.certificate import bound_of
from solvers.planning.columns import columns_of
from solvers.planning.confirming import confirm_refusals
from solvers.planning.instance import Instance, InstanceAsk, InstanceNode
from solvers.planning.planner import Effort, plan

PARTS = 250
"""Of one GPU; a share is rounded up to the next."""
FAULTS_TOLD_MAX = 5


def instance_of(jobs: list[TraceJob], nodes: list[TraceNode]) -> Instance:
    """All jobs over the whole fleet; value is thousandths of a GPU times seconds.

    Raises `TraceRefused` where jobs share GPUs and others are larger than a machine.
    """
    shares = any(job.size.share_milli for job in jobs)
    largest = max(node.gpus for node in nodes)
    if shares and max(job.size.gpus for job in jobs) > largest:
        raise TraceRefused("--plan knows no shares beside jobs that are larger than a machine")
    fleet = _gpus(nodes) if shares else _machines(nodes)
    asks = (_ask(n, job, largest, shares=shares) for n, job in enumerate(jobs))
    return Instance("trace", fleet, tuple(asks), {})


def _machines(nodes: list[TraceNode]) -> tuple[InstanceNode, ...]:
    return tuple(InstanceNode(node.name, "fleet", node.model, node.gpus) for node in nodes)


def _gpus(nodes: list[TraceNode]) -> tuple[InstanceNode, ...]:
    return tuple(
        InstanceNode(f"{node.name}/{gpu}", node.name, node.model, PARTS)
        for node in nodes
        for gpu in range(node.gpus)
    )


def _ask(number: int, job: TraceJob, largest: int, *, shares: bool) -> InstanceAsk:
    gpus = job.milli(largest) // MILLI_PER_GPU
    if shares:
        parts = -(-job.size.share_milli * PARTS // MILLI_PER_GPU)
        whole = 0 if parts else gpus
    else:
        parts = gpus if gpus <= largest else 0
        whole = 0 if parts else -(-gpus // largest)
    return InstanceAsk(
        f"j{number:07}",
        job.tenant,
        gpus=parts,
        nodes=whole,
        release=job.start_s,
        deadline=job.end_s,
        duration=job.end_s - job.start_s,
        value=job.milli(largest) * (job.end_s - job.start_s),
        exclusive=bool(shares and parts),
        one_rack=shares and whole > 1,
        models=job.models or None,
    )


def planned(jobs: list[TraceJob], nodes: list[TraceNode], booked: int) -> dict[str, Any]:
    """A plan of all jobs beside what was booked in the order of arrival (milli-GPU seconds).

    The bound is worked out anew from the certificate, and each refusal is looked at again.
    """
    instance = instance_of(jobs, nodes)
    begun = time.monotonic()
    found, certificate = plan(instance, Effort(improves=False))
    seconds = time.monotonic() - begun
    proven = bound_of(columns_of(instance), certificate)
    refusals = confirm_refusals(instance, found)
    offered = sum(ask.value for ask in instance.asks)
    return {
        "offered_gpu_s": offered // MILLI_PER_GPU,
        "arrival_gpu_s": booked // MILLI_PER_GPU,
        "plan_gpu_s": found.value // MILLI_PER_GPU,
        "bound_gpu_s": proven // MILLI_PER_GPU,
        "arrival_pct_of_bound": _percent(booked, proven),
        "plan_pct_of_bound": _percent(found.value, proven),
        "could_be_better_pct": round(100 - _percent(found.value, proven), 2),
        "beats_arrival": found.value > booked,
        "accepted": len(found.accepted),
        "refused": dict(sorted(Counter(why.value for _, why in found.refused).items())),
        "refusals_confirmed": sum(refusals.held.values()),
        "refusals_wrong": list(refusals.faults[:FAULTS_TOLD_MAX]),
        "seconds": round(seconds, 2),
    }


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 100.0

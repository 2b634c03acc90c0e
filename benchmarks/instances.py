"""Synthetic instances: log-normal durations, GPUs, whole nodes and gangs, on nodes of 8 GPUs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from connectors.traces.jobs import OnError
from connectors.traces.load import squeeze
from connectors.traces.reading import fleet_of, read_jobs
from solvers.planning.instance import Instance, InstanceAsk, InstanceNode

GRID_MINUTES = 15
HORIZON_MINUTES = 30 * 24 * 60
TENANTS = 40


def synthetic(
    asks: int, nodes: int, *, load: float = 0.9, seed: int = 1, rack_nodes: int = 0
) -> Instance:
    """R reservations on N nodes over 30 days; gangs of at most a rack lie in one, if there are."""
    dice = np.random.default_rng(seed)
    minutes = np.clip(np.exp(dice.normal(np.log(12 * 60), 1.2, asks)), 60, 14 * 24 * 60)
    family = dice.random(asks)
    gpus, whole = np.full(asks, 8), np.ones(asks, np.int64)
    small, gang = family < 0.45, family > 0.80
    gpus[small] = dice.choice([1, 2, 4], small.sum(), p=[0.5, 0.25, 0.25])
    whole[small] = 0
    whole[gang] = dice.choice([2, 4, 8, 16], gang.sum(), p=[0.5, 0.25, 0.15, 0.10])
    size = np.where(whole > 0, 8 * whole, gpus)
    capacity = nodes * 8 * HORIZON_MINUTES
    minutes = _scaled(minutes, size, load, capacity)
    if (size * minutes).sum() / capacity < load * 0.97:
        factor = load * capacity / (size * minutes).sum()
        grown = np.maximum(1, np.round(whole * factor)).astype(np.int64)
        whole = np.where(whole > 0, np.minimum(grown, max(1, nodes // 8)), 0)
        size = np.where(whole > 0, 8 * whole, gpus)
        minutes = _scaled(minutes, size, load, capacity)
    duration = (np.ceil(minutes / GRID_MINUTES) * GRID_MINUTES).astype(np.int64)
    start = dice.random(asks) * (HORIZON_MINUTES - duration)
    start = (np.floor(start / GRID_MINUTES) * GRID_MINUTES).astype(np.int64)
    tenant = dice.integers(0, TENANTS, asks)
    priority = dice.choice([1, 2, 4], asks, p=[0.6, 0.3, 0.1])
    rows = zip(
        *(gpus.tolist(), whole.tolist(), start.tolist(), duration.tolist(), tenant.tolist()),
        (size * duration // GRID_MINUTES * priority).tolist(),
        strict=True,
    )
    found = [
        InstanceAsk(
            f"r{number:06}",
            f"t{of_tenant}",
            gpus=0 if many else one,
            nodes=many,
            release=begin,
            deadline=begin + length,
            duration=length,
            value=value,
            one_rack=1 < many <= rack_nodes,
        )
        for number, (one, many, begin, length, of_tenant, value) in enumerate(rows)
    ]
    return Instance(f"{asks} on {nodes}", _fleet(nodes, 8, rack_nodes), tuple(found), {})


def _scaled(
    minutes: NDArray[np.float64], size: NDArray[np.int64], load: float, capacity: int
) -> NDArray[np.float64]:
    for _ in range(20):
        demand = (size * minutes).sum() / capacity
        if abs(demand / load - 1) < 0.01:
            break
        minutes = np.clip(minutes * load / demand, 60, 14 * 24 * 60)
    return minutes


def _fleet(nodes: int, gpus: int, rack_nodes: int) -> tuple[InstanceNode, ...]:
    rack = rack_nodes or nodes
    return tuple(InstanceNode(f"n{n:05}", f"k{n // rack:04}", "H100", gpus) for n in range(nodes))


def gangs(asks: int, racks: int, rack_nodes: int, *, load: float = 1.2, seed: int = 0) -> Instance:
    """Whole nodes only, 1 to 8 of them inside one rack, over 96 slots."""
    dice = np.random.default_rng(seed)
    slots = 96
    whole = dice.choice([1, 2, 4, 8], asks, p=[0.3, 0.3, 0.25, 0.15])
    whole = np.minimum(whole, rack_nodes)
    duration = np.clip(np.round(np.exp(dice.normal(2.2, 0.8, asks))), 1, 48).astype(np.int64)
    factor = load * racks * rack_nodes * slots / (whole * duration).sum()
    duration = np.clip(np.round(duration * factor), 1, 72).astype(np.int64)
    start = (dice.random(asks) * (slots - duration)).astype(np.int64)
    priority = dice.choice([1, 2, 4], asks, p=[0.5, 0.3, 0.2])
    found = [
        InstanceAsk(
            f"g{n:05}",
            "t0",
            gpus=0,
            nodes=int(whole[n]),
            release=int(start[n]),
            deadline=int(start[n] + duration[n]),
            duration=int(duration[n]),
            value=int(priority[n] * whole[n] * duration[n]),
            one_rack=True,
        )
        for n in range(asks)
    ]
    name = f"{asks} gangs on {racks}x{rack_nodes}"
    return Instance(name, _fleet(racks * rack_nodes, 8, rack_nodes), tuple(found), {})


def segments(
    asks: int, domains: int, *, load: float = 1.2, seed: int = 0, trays: int = 18, wanted: int = 16
) -> Instance:
    """Segments of 16 of the 18 trays of 4 GPUs of an NVLink domain."""
    like = gangs(asks, domains, trays, load=load * 4 / wanted, seed=seed)
    found = [replace(ask, nodes=wanted, value=ask.value // ask.nodes * wanted) for ask in like.asks]
    nodes = _fleet(domains * trays, 4, trays)
    return Instance(f"{asks} segments on {domains} domains", nodes, tuple(found), {})


def philly(file: Path, *, load: float = 1.3, nodes: int = 552) -> Instance:
    """The Philly trace squeezed to an offered load; sizes above a node rounded up to whole nodes."""
    fleet = fleet_of(f"{nodes}x8")
    jobs = squeeze(read_jobs(file, OnError.SKIP).jobs, fleet, load)
    found = []
    for number, job in enumerate(jobs):
        gpus = job.milli(8) // 1000
        length = job.end_s - job.start_s
        found.append(
            InstanceAsk(
                f"j{number:06}",
                job.tenant,
                gpus=gpus if gpus <= 8 else 0,
                nodes=0 if gpus <= 8 else -(-gpus // 8),
                release=job.start_s,
                deadline=job.end_s,
                duration=length,
                value=gpus * length,
            )
        )
    return Instance(f"Philly at {load}", _fleet(nodes, 8, 0), tuple(found), {})

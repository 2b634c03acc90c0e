"""`solve`: plans for instances of one's own, without a service."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connectors.cli.console import REFUSED, err, fail, options, tell
from domain.ids import NodeId
from domain.units import MILLI_PER_GPU, pieces_of_mask

if TYPE_CHECKING:
    from solvers.planning.certificate import Certificate
    from solvers.planning.instance import Instance, InstancePlan

FILE_BYTES_MAX = 128 << 20
SECONDS_MAX = 3600.0


def solve(
    file: Annotated[
        Path, typer.Argument(help="instances as JSON; docs/solver.md tells the format")
    ],
    seconds: Annotated[
        float, typer.Option(min=0.0, max=SECONDS_MAX, help="of CP-SAT for one instance")
    ] = 10.0,
    greedy: Annotated[bool, typer.Option("--greedy", help="without CP-SAT")] = False,
    certificates: Annotated[
        Path | None, typer.Option(help="write the prices that prove the bounds as JSON")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(help="draw each plan; of several, each into a file of its number")
    ] = None,
) -> None:
    """Plan instances from a file: who goes where, who is refused and why, and the bound."""
    from solvers.planning.planner import Effort, PlanBroken, plan

    instances, unknown = read(file)
    for pointer in unknown[:5]:
        err.print(f"ignored: {pointer} is no field of the format", style="dim")
    effort = Effort(
        improves=not greedy and seconds > 0,
        deterministic_seconds=seconds,
        wall_seconds=max(60.0, 3 * seconds),
    )
    plans: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    proofs: list[dict[str, Any]] = []
    for instance in instances:
        begun = time.monotonic()
        try:
            found, certificate = plan(instance, effort)
        except PlanBroken as error:
            fail(REFUSED, f"{instance.name}: a plan was made and failed its check: {error}")
            return
        taken = round(time.monotonic() - begun, 3)
        plans.append(_as_json(found, taken) if options.json else {})
        rows.append(_row(instance, found, taken))
        proofs.append(_proof(instance.name, certificate))
        if svg is not None:
            name = f"{svg.stem}-{len(proofs)}{svg.suffix}" if len(instances) > 1 else svg.name
            write_text(svg.with_name(name), _drawn(instance, found))
    if certificates:
        write_text(certificates, json.dumps(proofs, separators=(",", ":")) + "\n")
    tell(plans, rows, list(rows[0]) if rows else ("instance",), f"Plans of {file.name}")


def read(file: Path) -> tuple[list["Instance"], list[str]]:
    """The instances of a file and its unknown fields; whatever is wrong ends the command."""
    from solvers.planning.reading import InstanceRefused, read_instances

    try:
        size = file.stat().st_size
        if size > FILE_BYTES_MAX:
            fail(
                REFUSED,
                f"{file} has {size} bytes, the most is {FILE_BYTES_MAX}",
                "split it by time, or by what cannot share nodes anyway",
            )
        return read_instances(json.loads(file.read_text(encoding="utf-8")))
    except InstanceRefused as error:
        fail(REFUSED, f"{file}, at {error}", "docs/solver.md tells the format")
    except OSError as error:
        fail(REFUSED, f"{file}: {error.strerror}", "name a file with instances as JSON")
    except (ValueError, RecursionError) as error:
        fail(REFUSED, f"{file} is not JSON: {error}")
    raise AssertionError("every fault ends the command")


def write_text(file: Path, text: str) -> None:
    """Write a file; what cannot be written ends the command."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        fail(REFUSED, f"{file}: {error.strerror}", "name a file that can be written")


def _drawn(instance: "Instance", found: "InstancePlan") -> str:
    """A plan as a Gantt chart: what moved has an outline where it was, as far as its node."""
    from projections.gantt import Bar, Down, Gantt, Line, number_ticks
    from projections.gantt import svg as draw

    asks = {ask.id: ask for ask in instance.asks}
    gpus = {node.id: node.gpus for node in instance.nodes}
    bars: list[Bar] = []
    was: list[Bar] = []
    for placed in found.accepted:
        ask = asks[placed.id]
        span = (placed.start, placed.start + ask.duration, ask.tenant, ask.id)
        now = {node for node, _ in placed.pieces}
        for name, bits in placed.pieces:
            for piece in pieces_of_mask(NodeId(name), bits):
                first, width = piece.first_milli, piece.width_milli
                bars.append(Bar(name, first, width, *span, is_new=name not in ask.at))
        was += [
            Bar(node, 0, (ask.gpus or gpus[node]) * MILLI_PER_GPU, *span)
            for node in sorted(set(ask.at) - now)
        ]
    downs = [
        Down(node.id, 0, node.gpus * MILLI_PER_GPU, low, high, "down")
        for node in instance.nodes
        for low, high in node.down
    ]
    start = min((bar.start for bar in bars), default=0)
    end = max((bar.end for bar in bars), default=start + 1)
    lines = sorted(instance.nodes, key=lambda node: (node.rack, node.id))
    return draw(
        Gantt(
            instance.name,
            start,
            end,
            number_ticks(start, end),
            tuple(Line(node.id, node.gpus, node.rack) for node in lines),
            tuple(bars),
            tuple(downs),
            tuple(was),
            notes=(f"value {found.value}, at most {found.bound}; {len(found.refused)} refused",),
        )
    )


def _as_json(found: "InstancePlan", seconds: float) -> dict[str, Any]:
    accepted = [
        {
            "id": placed.id,
            "start": placed.start,
            "units": [
                {
                    "node": node,
                    "gpu_index": index,
                    "first_milli": 0,
                    "width_milli": MILLI_PER_GPU,
                }
                for node, index in placed.units()
            ],
        }
        for placed in found.accepted
    ]
    return {
        "name": found.name,
        "value": found.value,
        "accepted": accepted,
        "refused": [{"id": name, "reason": why.value} for name, why in found.refused],
        "moves": found.moves,
        "bound": found.bound,
        "seconds": seconds,
    }


def _row(instance: "Instance", found: "InstancePlan", seconds: float) -> dict[str, Any]:
    why = sorted({each.value for _, each in found.refused})
    return {
        "instance": instance.name,
        "value": found.value,
        "bound": found.bound,
        "accepted": len(found.accepted),
        "refused": f"{len(found.refused)} {', '.join(why)}".strip(),
        "moves": found.moves,
        "bound by": found.evidence["bound_by"].split(",")[0],
        "seconds": seconds,
    }


def _proof(name: str, certificate: "Certificate") -> dict[str, Any]:
    return {
        "name": name,
        "scale": certificate.scale,
        "models": {model: list(line) for model, line in certificate.models.items()},
        "quotas": {tenant: list(line) for tenant, line in certificate.quotas.items()},
    }

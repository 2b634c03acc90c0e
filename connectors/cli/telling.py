"""`scenario run` and `demo`."""

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from connectors.cli.console import REFUSED, err, group, options, out, tell
from connectors.cli.solving import write_text
from connectors.wiring.logs import quiet

if TYPE_CHECKING:
    from connectors.scenarios.junit import Verdict
    from connectors.scenarios.telling import Told

scenario, scenario_verb = group("scenario", "Stories in YAML with a virtual clock")


@scenario_verb("run")
def run(
    files: Annotated[list[Path], typer.Argument(help="YAML files (docs/scenarios.md)")],
    on: Annotated[
        str, typer.Option(help="memory, postgresql, or a whole service: by http or cli")
    ] = "memory",
    junit: Annotated[Path | None, typer.Option(help="write the results, as JUnit XML")] = None,
    svg: Annotated[Path | None, typer.Option(help="a folder for a picture of each story")] = None,
) -> None:
    """Tell each story and hold it against what it expects."""
    from rich.progress import track

    from connectors.scenarios.junit import junit as written
    from connectors.wiring.scenarios import STAGES

    if on not in STAGES:
        raise typer.BadParameter(f"{on!r} is no stage; there are {', '.join(STAGES)}")
    quiet()
    shown = track(files, "Telling", console=err, transient=True, disable=options.json)
    stories = [_told(file, on, svg) for file in shown]
    if junit is not None:
        write_text(junit, written(on, [verdict for verdict, _ in stories]))
    rows = [_row(verdict, told) for verdict, told in stories]
    tell({"scenarios": rows}, rows, ("story", "result", "steps", "events", "seconds"))
    wrong = [row for row in rows if row["result"] != "as told"]
    for row in wrong:
        if not options.json:
            err.print(f"[bold red]{row['problem']}[/]", highlight=False)
    if wrong:
        raise typer.Exit(REFUSED)


def _told(file: Path, on: str, svg: Path | None) -> tuple["Verdict", "Told | None"]:
    """Tell one story, and draw it where a picture is wanted."""
    from connectors.scenarios.junit import Verdict
    from connectors.scenarios.reading import ScenarioWrong
    from connectors.wiring.scenarios import tell_on
    from projections.gantt import svg as drawn

    begun = time.monotonic()
    try:
        told = tell_on(file, on)
    except ScenarioWrong as error:
        return Verdict(file, time.monotonic() - begun, str(error)), None
    seconds = time.monotonic() - begun
    if svg is not None:
        svg.mkdir(parents=True, exist_ok=True)
        write_text(svg / f"{file.stem}.svg", drawn(told.picture))
    return Verdict(file, seconds), told


def _row(verdict: "Verdict", told: "Told | None") -> dict[str, object]:
    row: dict[str, object] = {
        "story": verdict.file.stem.replace("_", " "),
        "file": str(verdict.file),
        "seconds": f"{verdict.seconds:.2f}",
    }
    if told is None:
        return row | {"result": "otherwise", "problem": verdict.problem}
    return row | {"result": "as told", "steps": told.steps, "events": told.events}


ACTS = (
    ("Two teams share two nodes of 8 GPUs. team-red is entitled to 8 GPUs, team-blue to 8.", ()),
    (
        "team-blue borrows what is idle: all 16 GPUs, for 8 hours.",
        ("book: {tenant: team-blue, gpus: 16, class: borrowed, from: +0s, to: +8h}", "as: LENT"),
    ),
    (
        "An hour later team-red wants its own 8. It gets them: team-blue has to give way.",
        ("at: +1h", "book: {tenant: team-red, gpus: 8, from: +1h, to: +5h}", "as: MINE"),
    ),
    (
        "team-red needs more than its quota. Without consent to pay for it: refused.",
        (
            "book: {tenant: team-red, gpus: 4, from: +1h, to: +3h}",
            "expect: {refused: quota, facts: {left_milli: '0'}}",
        ),
    ),
    (
        "It consents to overflow, up to 4 GPUs, and asks again.",
        (
            "do: ConsentOverflow",
            "with: {tenant_id: team-red, pool_id: P, mode: auto, cap_milli: 4000}",
        ),
    ),
    (
        "Now the same ask is accepted, at the overflow rate.",
        ("book: {tenant: team-red, gpus: 4, from: +1h, to: +3h}", "as: MORE"),
    ),
    (
        "At +2h a node fails. Who can move moves; who cannot is degraded, and it is told.",
        (
            "at: +2h",
            "do: ReportHealth",
            "with: {pool_id: P, node_id: n1, health: failed, cause: xid79}",
        ),
    ),
    (
        "It comes back; whoever was short is whole again.",
        (
            "at: +150m",
            "do: ReportHealth",
            "with: {pool_id: P, node_id: n1, health: recovered, cause: repaired}",
        ),
    ),
    (
        "At +5h everything has ended, and the books balance to the GPU-microsecond.",
        ("advance: +9h", "check: {usage: {}}"),
    ),
)
"""The story of the five facts: quota, reservation, preemption, failure, overflow."""

HEAD = """name: {name}
fleet: {{nodes: 2}}
tenants: {{team-red: {{quota: 8}}, team-blue: {{quota: 8, borrow: 8}}}}
hardware: {{apply_ms: 800, free_ms: 1200}}
steps:
"""


def demo() -> None:
    """A told story of the five facts, on a ledger of its own."""
    from connectors.wiring.scenarios import memory_stage, tell_file

    quiet()
    steps = ["  - " + "\n    ".join(lines) for _, lines in ACTS if lines]
    acts = [words for words, lines in ACTS if lines]
    heard: dict[int, list[str]] = {}

    def hear(step: int, events: list[str]) -> None:
        heard.setdefault(step, []).extend(events)

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "demo.yaml"
        file.write_text(HEAD.format(name="The five facts") + "\n".join(steps) + "\n")
        told = tell_file(file, memory_stage(), hear)
    if options.json:
        tell({"story": told.name, "events": told.events, "acts": acts}, (), ())
        return
    out.print(f"[bold]{ACTS[0][0]}[/]", highlight=False)
    for step, words in enumerate(acts):
        out.print(f"\n[bold]{words}[/]", highlight=False)
        for event in heard.get(step, ()):
            out.print(f"    {event}", style="dim", highlight=False)
    closing = "every one immutable; a replay of them ends in the same bytes"
    out.print(f"\n{told.events} events, {closing}.", highlight=False)

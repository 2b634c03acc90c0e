"""`bench`: the figures of ARCHITECTURE.md, each beside its raw limit."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from connectors.cli.console import REFUSED, fail, options

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"
NO_BENCHMARKS = frozenset({"figures", "bookings", "charges", "brokers", "instances", "__init__"})
"""Modules that benchmarks share."""


def bench(
    name: Annotated[
        str,
        typer.Argument(
            help="sequencer, projections, http, restart, relay, ingress, restore, codec, ..."
        ),
    ],
) -> None:
    """Measure, beside the raw limit of the same run; a miss is no failure."""
    file = FOLDER / f"{name}.py"
    if not FOLDER.exists():
        fail(REFUSED, "benchmarks are part of a checkout, not of an installed package")
    if not file.exists() or name in NO_BENCHMARKS:
        raise typer.BadParameter(f"no benchmark is named {name!r}")
    command = [sys.executable, "-m", f"benchmarks.{name}", *(["--json"] if options.json else [])]
    done = subprocess.run(command, cwd=FOLDER.parent, check=False)  # noqa: S603 - our own
    raise typer.Exit(done.returncode)

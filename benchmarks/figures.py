"""What every benchmark prints: figures beside their goals and raw limits, as JSON or a table."""

import argparse
import json
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from connectors.embedded.server import EmbeddedPostgres
from connectors.postgres.migrate import migrate

SEED = 2


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number. `ratio` is to the raw limit taken in the same run."""

    id: str
    figure: float
    unit: str
    goal: float | None = None
    raw: float | None = None
    is_most: bool = False
    """Whether the goal is an upper bound."""

    def row(self) -> dict[str, object]:
        """As it is printed."""
        ok = None
        if self.goal is not None:
            ok = self.figure <= self.goal if self.is_most else self.figure >= self.goal
        ratio = None if not self.raw else round(self.figure / self.raw, 3)
        values = asdict(self) | {"ratio": ratio, "ok": ok, "seed": SEED}
        values["machine"] = f"{os.cpu_count()} cores"
        del values["is_most"]
        return values


def main(measure: Callable[[], Sequence[Figure]], doc: str) -> None:
    """Measure, and print: only JSON with `--json`. A missed goal is no failure."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--json", action="store_true", help="print only JSON")
    as_json = parser.parse_args().json
    rows = [figure.row() for figure in measure()]
    if as_json:
        print(json.dumps(rows))
        return
    for row in rows:
        goal = "" if row["goal"] is None else f"  goal {row['goal']:g}"
        raw = "" if row["raw"] is None else f"  raw {row['raw']:,.1f} (x{row['ratio']})"
        verdict = {True: "  ok", False: "  MISSED", None: ""}[row["ok"]]  # type: ignore[index]
        print(f"{row['id']:<36} {row['figure']:>12,.2f} {row['unit']:<12}{goal}{raw}{verdict}")


@contextmanager
def database() -> Iterator[str]:
    """A durable PostgreSQL for a moment, migrated."""
    with (
        tempfile.TemporaryDirectory(prefix="gpuledger-bench-") as folder,
        EmbeddedPostgres(Path(folder), secrets.token_hex(8)) as server,
    ):
        migrate(server.dsn)
        yield server.dsn

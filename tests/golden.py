"""Golden bytes: `python -m tests.golden` adds those of new versions and never alters old ones.

`--young` makes those of the newest versions again, while nobody has data yet.
"""

import json
import sys
from pathlib import Path

from schemas.registry import Contract, registry
from tests.examples import RECORDS, example

GOLDEN = Path(__file__).parent / "contracts" / "golden" / "bodies.json"


def golden() -> dict[str, str]:
    """The bytes of each version's example as hex, by stored type name."""
    bodies: dict[str, str] = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    return bodies


def body_of(contract: Contract) -> bytes:
    """The bytes of the example of a newest version."""
    return registry().encode(example(RECORDS[contract.name]))[1]


def write(*, young: bool) -> list[str]:
    """Add what is missing; the names of what was written."""
    known = golden()
    fresh = {
        contract.type: body_of(contract).hex()
        for contract in registry().newest.values()
        if young or contract.type not in known
    }
    bodies = {name: body for name, body in known.items() if name in registry().by_type} | fresh
    GOLDEN.write_text(json.dumps(bodies, indent=1, sort_keys=True) + "\n")
    return sorted(name for name, body in fresh.items() if known.get(name) != body)


if __name__ == "__main__":
    print(*write(young="--young" in sys.argv), sep="\n")  # noqa: T201 - a tool that prints

"""The command line answers at once: what only some verbs need is loaded by those verbs."""

import subprocess
import sys

HEAVY = ("numba", "numpy", "fastapi", "psycopg", "fastavro", "ortools", "kafka", "pyarrow", "yaml")


def test_a_verb_that_asks_the_service_loads_no_part_of_one() -> None:
    program = "import sys, connectors.cli.app; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not set(HEAVY) & set(done.stdout.split())

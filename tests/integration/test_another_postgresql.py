"""A PostgreSQL that is not the embedded one: the distribution's, as an operator may have it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from connectors.embedded import server as embedded
from connectors.embedded.server import EmbeddedPostgres

ROOT = Path(__file__).parents[2]
SUITES = (
    "tests/contracts/test_journal.py",
    "tests/contracts/test_recorder.py",
    "tests/integration/test_append_only.py",
    "tests/integration/test_lease.py",
    "tests/integration/test_migrations.py",
)


@pytest.fixture(scope="module")
def other_dsn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of the distribution's newest PostgreSQL."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: p.parts[4:5])
    if not found:
        if os.environ.get("CI"):
            pytest.fail("no other PostgreSQL: apt-get install postgresql")
        pytest.skip("no other PostgreSQL: apt-get install postgresql")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedded, "binaries", lambda: found[-1].parent)
        with EmbeddedPostgres(tmp_path_factory.mktemp("other"), "another's") as server:
            yield server.dsn


def test_the_journal_keeps_its_promises_on_it(other_dsn: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SUITES],
        cwd=ROOT,
        env=os.environ | {"GPULEDGER_TEST_DSN": other_dsn},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4_000:]
    with psycopg.connect(other_dsn) as connection:
        assert connection.info.server_version < 180_000

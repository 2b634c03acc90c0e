"""Attacks below our API: each is detected and named, or named as what cannot be excluded."""

import json
from collections.abc import Iterator

import psycopg
import pytest

from connectors.postgres.journal import JournalReader
from connectors.postgres.verifying import verify_log
from connectors.sequencer.engine import Sequencer
from domain.verdict import KnownRoot, Verdict
from schemas.registry import registry
from tests import builders as b
from tests.journals import furnished, send, shut


@pytest.fixture
def sequencer(postgres_dsn: str) -> Iterator[Sequencer]:
    found = furnished(postgres_dsn)
    for hour in range(1, 280):
        send(found, b.book(gpus=3, start=hour, end=hour + 1))
    found.keep_state()
    send(found, b.book(gpus=1, start=300, end=301))
    yield found
    shut(found)


def verified(dsn: str, known: KnownRoot | None = None) -> Verdict:
    reader = JournalReader(dsn)
    try:
        return verify_log(reader, registry(), known)
    finally:
        reader.close()


def attack(dsn: str, *statements: str) -> None:
    """What somebody does who owns the database."""
    with psycopg.connect(dsn) as connection:
        connection.execute("ALTER TABLE journal DISABLE TRIGGER append_only")
        connection.execute("ALTER TABLE tile DISABLE TRIGGER append_only")
        for statement in statements:
            connection.execute(statement.encode())


def test_an_honest_log_holds_and_says_what_cannot_be_excluded(
    sequencer: Sequencer, postgres_dsn: str
) -> None:
    verdict = verified(postgres_dsn)
    assert verdict.faults == []
    assert verdict.root == sequencer.tree.root.hex()
    assert "the root of the head" in verdict.checked
    assert "1 tiles of the tree" in verdict.checked
    assert any(words.startswith("the snapshot at") for words in verdict.checked)
    assert "the tail was cut" in verdict.not_excluded[0]
    mine = verified(postgres_dsn, KnownRoot(sequencer.head.seq, sequencer.tree.root))
    assert (mine.holds, mine.not_excluded) == (True, [])


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (
            ["UPDATE journal SET body = set_byte(body, 3, get_byte(body, 3) # 1) WHERE seq = 20"],
            "event 20 was changed",
        ),
        (
            [
                "UPDATE journal SET body = set_byte(body, 3, get_byte(body, 3) # 1) WHERE seq = 20",
                "UPDATE journal SET leaf = sha256('\\x00' || envelope || body) WHERE seq = 20",
            ],
            "tile 0 of level 0 is another one",
        ),
        (["DELETE FROM journal WHERE seq = 20"], "event 20 is missing"),
        (
            [
                "UPDATE journal SET seq = 0 WHERE seq = 20",
                "UPDATE journal SET seq = 20 WHERE seq = 21",
                "UPDATE journal SET seq = 21 WHERE seq = 0",
            ],
            "event 20 is not in its place",
        ),
        (["DELETE FROM journal WHERE seq > 270"], "the head says"),
        (["UPDATE journal SET stream = 'node/n9' WHERE seq = 20"], "not in its place"),
        (["UPDATE journal SET recorded_at = 5 WHERE seq = 20"], "recorded time"),
        (["DELETE FROM tile"], "tile 0 of level 0"),
        (["DELETE FROM cell WHERE ctid IN (SELECT ctid FROM cell LIMIT 1)"], "1 are missing"),
        (["UPDATE snapshot SET state_hash = sha256('x')"], "the snapshot at"),
    ],
)
def test_what_was_changed_below_the_api_is_named(
    sequencer: Sequencer, postgres_dsn: str, statements: list[str], words: str
) -> None:
    attack(postgres_dsn, *statements)
    verdict = verified(postgres_dsn)
    assert not verdict.holds
    assert any(words in fault for fault in verdict.faults), verdict.faults


def test_a_history_that_was_written_anew_as_a_whole_needs_a_root_that_you_kept(
    sequencer: Sequencer, postgres_dsn: str, postgres_server: str
) -> None:
    kept = KnownRoot(sequencer.head.seq, sequencer.tree.root)
    admin = psycopg.conninfo.make_conninfo(postgres_server, dbname="postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        template = psycopg.conninfo.conninfo_to_dict(postgres_server)["dbname"]
        connection.execute(f'CREATE DATABASE forged TEMPLATE "{template}"'.encode())
        try:
            forged = psycopg.conninfo.make_conninfo(postgres_server, dbname="forged")
            other = furnished(forged)
            for hour in range(1, 281):
                send(other, b.book(gpus=2, start=hour, end=hour + 1))
            shut(other)
            assert verified(forged).holds
            assert "written anew" in verified(forged).not_excluded[0]
            (fault,) = verified(forged, kept).faults
            assert "another root than yours" in fault
            longer = KnownRoot(kept.size + 100, kept.root)
            assert "your root is of" in verified(forged, longer).faults[0]
        finally:
            connection.execute("DROP DATABASE forged WITH (FORCE)")


def test_the_command_ends_with_one_when_something_is_wrong(
    sequencer: Sequencer, postgres_dsn: str
) -> None:
    import subprocess
    import sys

    command = [sys.executable, "-m", "connectors.cli", "--json", "audit", "verify"]
    command += ["--dsn", postgres_dsn]
    honest = subprocess.run(command, capture_output=True, text=True, check=False)
    told = json.loads(honest.stdout)
    assert (honest.returncode, told["holds"]) == (0, True)
    known = ["--known", f"{told['events']}:{told['root']}"]
    assert subprocess.run([*command, *known], capture_output=True, check=False).returncode == 0
    attack(postgres_dsn, "DELETE FROM journal WHERE seq = 7")
    forged = subprocess.run(command, capture_output=True, text=True, check=False)
    assert forged.returncode == 1
    assert "event 7 is missing" in json.loads(forged.stdout)["faults"]

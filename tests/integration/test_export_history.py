"""An exported history, verified by a stranger's file alone, and each way to change it seen through."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import fastavro
import pytest

from connectors.exports.history import EVENTS, NOTE, read_history
from connectors.keys.signing import Signer
from connectors.sequencer.engine import Sequencer
from connectors.wiring.auditing import export_history
from connectors.wiring.proving import signer_of
from domain.merkle import Tree
from schemas.envelope import decode_envelope, leaf_of
from schemas.registry import registry
from tests import builders as b
from tests.integration.conftest import Running
from tests.journals import furnished, send, shut

VERIFIER = Path(__file__).parents[2] / "docs" / "verify.py"
SIGNER = signer_of(b"k" * 32)
Row = tuple[bytes, bytes]


@pytest.fixture
def sequencer(postgres_dsn: str) -> Iterator[Sequencer]:
    opened = furnished(postgres_dsn)
    for gpus in (1, 2, 8):
        send(opened, b.book(gpus=gpus))
    yield opened
    shut(opened)


@pytest.fixture
def folder(sequencer: Sequencer, postgres_dsn: str, tmp_path: Path) -> Path:
    export_history(postgres_dsn, tmp_path / "history", SIGNER, lambda _, __: None)
    return tmp_path / "history"


def verify(folder: Path, *words: str, key: str = "") -> subprocess.CompletedProcess[str]:
    """The stranger's verifier, which sees nothing of ours: it runs far from here, isolated."""
    command = [sys.executable, "-I", str(VERIFIER), str(folder), "--key", key or SIGNER.key.text()]
    return subprocess.run(
        [*command, *words], capture_output=True, text=True, check=False, cwd=folder, timeout=60
    )


def note_of(rows: list[Row], signer: Signer = SIGNER) -> str:
    tree, _ = Tree().grown([leaf_of(*row) for row in rows])
    return signer.sign(tree.size, tree.root)


def rewrite(folder: Path, rows: list[Row], signer: Signer | None = None) -> None:
    """Put other events in place of those that were exported; signed anew with a key, or not."""
    with (folder / EVENTS).open("rb") as file:
        schema = fastavro.reader(file).writer_schema
    with (folder / EVENTS).open("wb") as out:
        fastavro.writer(out, schema, [{"envelope": e, "body": body} for e, body in rows])
    if signer is not None:
        (folder / NOTE).write_text(note_of(rows, signer))


def flipped(rows: list[Row]) -> list[Row]:
    envelope, body = rows[4]
    return [*rows[:4], (envelope, body[:-1] + bytes([body[-1] ^ 1])), *rows[5:]]


ATTACKS: dict[str, tuple[Callable[[list[Row]], list[Row]], str]] = {
    "a byte of an event": (flipped, "WRONG"),
    "an event removed": (lambda rows: rows[:3] + rows[4:], "event 4 is missing"),
    "two swapped": (lambda rows: [*rows[:3], rows[4], rows[3], *rows[5:]], "event 4 is missing"),
    "the tail cut": (lambda rows: rows[:-2], "the checkpoint is of"),
    "an event said twice": (lambda rows: [*rows, rows[-1]], "is missing or not in its place"),
}


def test_a_history_holds_for_a_stranger_and_for_us(folder: Path, sequencer: Sequencer) -> None:
    done = verify(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"holds: {sequencer.head.seq} events" in done.stdout
    assert "nobody of 3 held" in done.stdout
    assert "give --kept" in done.stdout
    ours = audit(folder, "--key", SIGNER.key.text())
    assert ours.returncode == 0, ours.stdout + ours.stderr
    assert json.loads(ours.stdout)["root"] == sequencer.tree.root.hex()


def audit(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "connectors.cli", "--json", "audit", "verify", "--folder"]
    return subprocess.run(
        [*command, str(folder), *words], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("attack", list(ATTACKS))
def test_what_is_changed_below_the_checkpoint_is_seen(folder: Path, attack: str) -> None:
    change, words = ATTACKS[attack]
    rewrite(folder, change(list(read_history(folder))))
    done = verify(folder)
    assert (done.returncode, words in done.stdout) == (1, True), done.stdout
    ours = audit(folder)
    assert ours.returncode == 1
    assert "another file than was exported" in ours.stderr


def test_a_history_signed_by_another_key_is_nobodys(folder: Path) -> None:
    rewrite(folder, list(read_history(folder)), signer_of(b"x" * 32))
    done = verify(folder)
    assert done.returncode == 1
    assert "bears no signature of" in done.stdout


def test_events_and_tree_rewritten_and_signed_need_a_kept_checkpoint(
    folder: Path, tmp_path: Path
) -> None:
    rows = list(read_history(folder))
    kept = tmp_path / "kept.note"
    kept.write_text(note_of(rows[:6]))
    assert verify(folder, "--kept", str(kept)).returncode == 0
    rewrite(folder, relabelled(rows), SIGNER)
    assert verify(folder).returncode == 0, (
        "a fork that is whole and signed cannot be told by itself"
    )
    found = verify(folder, "--kept", str(kept))
    assert found.returncode == 1
    assert "the first 6 events are not those of" in found.stdout


def relabelled(rows: list[Row]) -> list[Row]:
    """Another history that is as good as the first: somebody else opened the pool."""
    envelope, body = rows[1]
    said = decode_envelope(envelope).principal.encode()
    other = envelope.replace(said, said[:-1] + b"?")
    return [rows[0], (other, body), *rows[2:]]


def test_a_log_that_was_cut_below_what_was_kept_is_told(folder: Path, tmp_path: Path) -> None:
    rows = list(read_history(folder))
    kept = tmp_path / "kept.note"
    kept.write_text(note_of(rows))
    rewrite(folder, rows[:-2], SIGNER)
    found = verify(folder, "--kept", str(kept))
    assert found.returncode == 1
    assert "the log was cut to" in found.stdout


def test_two_that_hold_the_same_at_once_are_named(folder: Path) -> None:
    rows = list(read_history(folder))
    confirmed = [
        at
        for at, (envelope, _) in enumerate(rows)
        if decode_envelope(envelope).type == "ReservationConfirmed.v1"
    ]
    first, second = confirmed[:2]
    name = "ReservationConfirmed.v1"
    taken = registry().decode(name, rows[first][1])
    fact = registry().decode(name, rows[second][1])
    fields = {n: getattr(fact, n) for n in fact.__dataclass_fields__} | {"segments": taken.segments}
    _, body = registry().encode(type(fact)(**fields))
    rows[second] = (rows[second][0], body)
    rewrite(folder, rows, SIGNER)
    found = verify(folder)
    assert found.returncode == 1
    assert f"{taken.reservation_id}" in found.stdout
    assert "both hold" in found.stdout


def test_a_service_exports_its_history_while_it_runs(running: Running, tmp_path: Path) -> None:
    there = tmp_path / "out"
    done = running.cli("audit", "export", str(there), "--json")
    assert done.returncode == 0, done.stderr
    key = running.cli("audit", "key").stdout.strip()
    found = verify(there, key=key)
    assert found.returncode == 0, found.stdout + found.stderr
    again = running.cli("audit", "export", str(there))
    assert (again.returncode, "not empty" in again.stderr) == (1, True)

"""What a running log proves of itself, to those who may ask, as they would check it."""

import base64
import json
from pathlib import Path

import pytest

from connectors.keys.signing import Signer, verified
from domain.checkpoint import verifier_key_of
from domain.consistency import is_consistent
from domain.merkle import is_included
from tests.integration.conftest import Running


def octets(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def path(content: dict[str, list[str]]) -> list[bytes]:
    return [octets(each) for each in content["hashes"]]


def test_a_kept_checkpoint_proves_the_log_that_grew_from_it(
    running: Running, tmp_path: Path
) -> None:
    key = verifier_key_of(running.cli("audit", "key").stdout)
    kept = tmp_path / "kept.note"
    assert running.cli("audit", "checkpoint", "--out", str(kept)).returncode == 0
    before = verified(kept.read_text(), key)
    assert running.cli("tenant", "register", "later").returncode == 0
    now = verified(_note(running), key)
    assert now.size > before.size

    proof = json.loads(running.cli("audit", "proof", "--from", str(before.size)).stdout)
    assert octets(proof["from_root"]) == before.root
    root = octets(proof["root"])
    assert is_consistent(before.size, before.root, proof["size"], root, path(proof))

    found = json.loads(
        running.cli("audit", "proof", "--seq", "3", "--size", str(before.size)).stdout
    )
    assert is_included(octets(found["leaf"]), 2, before.size, path(found), before.root)

    words = ("audit", "verify", "--checkpoint", str(kept), "--json")
    holds = running.cli(*words, "--key", key.text())
    assert holds.returncode == 0, holds.stderr
    assert any("events is yours" in what for what in json.loads(holds.stdout)["checked"])


def _note(running: Running) -> str:
    note: str = json.loads(running.cli("--json", "audit", "checkpoint").stdout)["checkpoint"]
    return note


def test_a_checkpoint_of_another_history_is_a_fault(running: Running, tmp_path: Path) -> None:
    other = Signer.of("elsewhere/shard/0", b"k" * 32)
    forked, foreign = tmp_path / "forked.note", tmp_path / "foreign.note"
    forked.write_text(other.sign(2, b"r" * 32))
    foreign.write_text(_note(running))
    words = ("audit", "verify", "--key", other.key.text(), "--checkpoint")
    found = running.cli(*words, str(forked))
    assert found.returncode == 1
    assert "another root than yours" in found.stdout
    unsigned = running.cli(*words, str(foreign))
    assert unsigned.returncode == 1
    assert "bears no signature of elsewhere/shard/0" in unsigned.stderr
    keyless = running.cli("audit", "verify", "--checkpoint", str(forked))
    assert (keyless.returncode, "--key" in keyless.stderr) == (2, True)


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("inclusion", "/seq"),
        ("inclusion?seq=0", "/size"),
        ("inclusion?seq=999999999", "/size"),
        ("inclusion?seq=1&size=999999999", "/size"),
        ("inclusion?seq=1&size=0", "/size"),
        ("consistency", "/from"),
        ("consistency?from=999999999", "/size"),
        ("consistency?from=5&size=4", "/size"),
    ],
)
def test_what_never_was_has_no_proof(running: Running, query: str, pointer: str) -> None:
    with running.http("auditor") as auditor:
        answer = auditor.get(f"/v1/log/{query}")
    assert (answer.status_code, answer.json()["pointer"]) == (400, pointer)

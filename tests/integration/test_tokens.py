"""Tokens of a running service: whoever gets one may speak at once, and is a stranger once it is revoked."""

import json
from pathlib import Path

import pytest

from connectors.tokens.tokens import TokenFile, Tokens, hash_of
from domain.ids import PrincipalId, TenantId
from domain.principal import Role
from tests.integration.conftest import Running


def test_a_token_holds_from_when_it_is_added_until_it_is_revoked(running: Running) -> None:
    words = ("token", "add", "ci-runner", "--role", "tenant", "--tenant", "team-a", "--json")
    made = json.loads(running.cli(*words).stdout)
    who = json.loads(running.cli("--token", made["token"], "whoami", "--json").stdout)
    assert (who["principal"], who["role"], who["tenant"]) == (made["principal"], "tenant", "team-a")
    listed = json.loads(running.cli("token", "list", "--json").stdout)["tokens"]
    (row,) = [row for row in listed if row["name"] == "ci-runner"]
    assert row["sha256"] == hash_of(made["token"])[:12]
    assert made["token"] not in json.dumps(listed)
    assert running.cli("token", "revoke", "ci-runner").returncode == 0
    turned_away = running.cli("--token", made["token"], "whoami")
    assert turned_away.returncode == 1
    assert "unauthenticated" in turned_away.stderr


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("add", "x", "--role", "tenant"), 2, "--tenant"),
        (("add", "x", "--role", "operator", "--tenant", "team-a"), 2, "--tenant"),
        (("add", "not a name", "--role", "operator"), 2, "no name"),
        (("add", "operator", "--role", "auditor"), 1, "is a operator"),
        (("add", "x", "--role", "emperor"), 2, "emperor"),
        (("revoke", "nobody"), 1, "token list"),
    ],
)
def test_what_cannot_be_done_with_tokens_is_said(
    running: Running, words: tuple[str, ...], status: int, says: str
) -> None:
    done = running.cli("token", *words)
    assert (done.returncode, done.stdout) == (status, "")
    assert says in done.stderr


def test_new_tokens_for_all_leave_those_of_others(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    tokens = Tokens({})
    first = tokens.issue_to_all(b"secret", ["red"])
    kept = tokens.issue(PrincipalId("robot"), Role.TENANT, TenantId("red"), "robot")
    tokens.write(path)
    file = TokenFile(path)
    assert file.principal(kept)
    again = Tokens.read(path)
    second = again.issue_to_all(b"secret", ["red"])
    again.write(path)
    assert [file.principal(old) for old in first.values()] == [None] * len(first)
    assert all(file.principal(new) for new in second.values())
    assert file.principal(kept)
    assert again.revoke(hash_of(kept)[:12]) == [hash_of(kept)]
    again.write(path)
    assert file.principal(kept) is None
    path.unlink()
    assert file.principal(second["red"]) is None

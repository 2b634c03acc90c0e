"""The command line at its edges: odd words end in a sentence and a status, never in a traceback."""

import json

import pytest

from tests.integration.conftest import Running


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("reserve", "--from", "tomorrow 25:00", "--tenant", "team-a"), 2),
        (("reserve", "--from", "", "--tenant", "team-a"), 2),
        (("reserve", "--from", "tomorrow morning", "--tenant", "team-a"), 2),
        (("reserve", "--gpus", "1"), 2),
        (("node", "fail", "node-[/]"), 1),
        (("why", "[bold"), 1),
        (("submit", "NoSuchCommand"), 2),
        (("submit", "CordonNode"), 2),
        (("submit", "CordonNode", "{"), 2),
        (("submit", "CordonNode", "[1]"), 2),
        (("submit", "CordonNode", "@no-such-file"), 2),
        (("submit", "RegisterTenant", '{"tenant": "t"}'), 1),
        (("clock", "advance"), 2),
        (("--at", "2030-01-01T00:00:00Z", "clock", "advance"), 1),
        (("--at", "2030-01-01T00:00:00Z", "reserve", "--gpus", "1", "--tenant", "team-a"), 1),
        (("scenario", "run", "--on", "mars", "x.yaml"), 2),
        (("tenant", "register", "[/red]"), 1),
        (("--token", "wrong", "watch"), 1),
        (("--token", "wrong", "status"), 1),
        (("--as", "nobody", "status"), 1),
        (("--server", "nonsense", "status"), 3),
        (("--server", "http://127.0.0.1:9", "watch"), 3),
    ],
)
def test_odd_words_end_in_a_sentence(running: Running, words: tuple[str, ...], status: int) -> None:
    done = running.cli(*words)
    assert done.returncode == status, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()
    assert not done.stdout


def test_json_may_stand_behind_the_verb(running: Running) -> None:
    for words in (("status",), ("node", "list"), ("reservation", "list"), ("whoami",)):
        assert json.loads(running.cli(*words, "--json").stdout)


def test_a_tenant_books_for_itself(running: Running) -> None:
    done = running.cli("--json", "--as", "team-b", "reserve", "--gpus", "1", "--for", "1m")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["facts"][0]["tenant_id"] == "team-b"


def test_any_command_can_be_sent_with_its_fields(running: Running) -> None:
    body = '{"node_id": "node-16", "note": null, "reason": "cables"}'
    done = running.cli("submit", "CordonNode", body, "--json")
    assert json.loads(done.stdout)["facts"][0]["type"] == "NodeCordoned.v1", done.stderr
    assert running.cli("node", "uncordon", "node-16").returncode == 0


def test_a_refusal_is_json_where_json_is_asked(running: Running) -> None:
    done = running.cli("reserve", "--nodes", "999", "--tenant", "team-a", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["reason"] == "size-invalid"

"""Notes and names: read by who may, erased for everybody, and the log as it was."""

import psycopg

from tests.integration.conftest import Running, eventually

WORDS = "the fan of slot 3 screams, says Jo"


def note_of(running: Running, who: str, node: str) -> object:
    with running.http(who) as client:
        events = client.get("/v1/events?limit=1000").json()["events"]
    found = [e["fact"] for e in events if e["type"] == "NodeCordoned.v1"]
    return next(fact["note"] for fact in found if fact["node_id"] == node)


def leaves(running: Running) -> list[tuple[object, ...]]:
    with psycopg.connect(running.service.dsn) as connection:
        return connection.execute("SELECT seq, leaf FROM journal ORDER BY seq").fetchall()


def test_a_note_is_read_by_operators_until_its_writer_is_erased(running: Running) -> None:
    node = "node-01"
    done = running.cli("node", "cordon", node, "--reason", "noise", "--note", WORDS)
    assert done.returncode == 0, done.stderr
    assert note_of(running, "operator", node) == WORDS
    assert note_of(running, "auditor", node) == WORDS
    with running.http() as client:
        me = client.get("/v1/whoami").json()["principal"]
        named = client.put(f"/v1/directory/{me}", json={"name": "Jo", "email": "jo@x.example"})
        assert named.status_code == 200
        assert client.get(f"/v1/directory/{me}").json()["name"] == "Jo"
    with psycopg.connect(running.service.dsn) as connection:
        bodies = b"".join(
            bytes(row[0]) for row in connection.execute("SELECT body FROM journal").fetchall()
        )
    assert b"Jo" not in bodies
    before = leaves(running)
    assert running.cli("audit", "erase", me, "--reason", "left").returncode == 0
    eventually(lambda: note_of(running, "operator", node) == "(erased)")
    with running.http() as client:
        assert client.get(f"/v1/directory/{me}").status_code == 404
    assert leaves(running)[: len(before)] == before


def test_a_note_that_is_sent_twice_is_one_command(running: Running) -> None:
    body = {"acts": ["plan"], "reason": "test", "note": "once"}
    with running.http() as client:
        headers = {"Idempotency-Key": "a note twice"}
        first = client.post("/v1/freeze", json=body, headers=headers)
        again = client.post("/v1/freeze", json=body, headers=headers)
        assert (first.status_code, again.json()["repeat"]) == (200, True)
        other = client.post("/v1/freeze", json=body | {"note": "other"}, headers=headers)
        assert other.status_code == 409
        client.post("/v1/thaw", json=body, headers={"Idempotency-Key": "thaw"})


def test_a_note_is_short_text_and_nothing_else(running: Running) -> None:
    with running.http() as client:
        for at, note in enumerate(["", "x" * 1001, 5, {"subject_id": "a", "box": "00"}]):
            body = {"acts": ["plan"], "reason": "test", "note": note}
            answer = client.post("/v1/freeze", json=body, headers={"Idempotency-Key": f"bad {at}"})
            assert (answer.status_code, answer.json()["pointer"]) == (400, "/note")


def test_the_directory_is_changed_by_operators_only(running: Running) -> None:
    with running.http("team-a") as tenant:
        me = tenant.get("/v1/whoami").json()["principal"]
        body = {"name": "me"}
        assert tenant.put(f"/v1/directory/{me}", json=body).status_code == 403
        assert tenant.get("/v1/directory/someone").status_code == 403
        assert tenant.get(f"/v1/directory/{me}").status_code == 404
    with running.http() as operator:
        assert operator.put(f"/v1/directory/{me}", json={"nom": "x"}).status_code == 400

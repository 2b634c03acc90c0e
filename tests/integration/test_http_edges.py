"""The HTTP face at its edges: odd input has a problem, and a tenant sees nothing of another."""

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Running, eventually

BOOK: dict[str, Any] = {
    "tenant_id": "team-a",
    "pool_id": "main",
    "size": {"gpus": 1},
    "duration_seconds": 60,
}


def post(client: httpx.Client, path: str, body: Any, **headers: str) -> httpx.Response:
    return client.post(path, json=body, headers={"Idempotency-Key": uuid.uuid4().hex, **headers})


def is_problem(answer: httpx.Response, status: int) -> bool:
    kind = answer.headers["content-type"]
    return (answer.status_code, kind) == (status, "application/problem+json")


@pytest.mark.parametrize(
    ("path", "pointer"),
    [
        ("/v1/reservations?limit=-1", "/limit"),
        ("/v1/reservations?limit=99999999999999999999", "/limit"),
        ("/v1/reservations?limit=many", "/limit"),
        ("/v1/reservations?state=%00", "/state"),
        ("/v1/reservations/%00", "/reservation_id"),
        ("/v1/why/%00", "/subject"),
        ("/v1/events?after=-1", "/after"),
        ("/v1/events?limit=%C2%B2", "/limit"),
        ("/v1/calendar?from=2030-01-01T00:00:00", "/from"),
        ("/v1/calendar?to=soon", "/to"),
        ("/v1/usage?from=x", "/from"),
        ("/v1/availability?pool_id=main&tenant_id=team-a&gpus=" + "9" * 30, "/gpus"),
        ("/v1/availability?pool_id=main&tenant_id=team-a&gpus=1&start=2030-01-01T00:00", "/start"),
        ("/v1/availability?gpus=1", "/pool_id"),
    ],
)
def test_a_query_that_makes_no_sense_is_pointed_at(
    running: Running, path: str, pointer: str
) -> None:
    with running.http() as client:
        answer = client.get(path)
        assert is_problem(answer, 400), answer.text
        assert answer.json()["pointer"] == pointer


def test_headers_that_are_no_numbers_are_pointed_at(running: Running) -> None:
    with running.http() as client:
        answer = client.get("/v1/events", headers={b"Last-Event-ID": b"\xb2"})
        assert answer.json()["pointer"] == "/Last-Event-ID"
        for tag in ('W/"3"', "*", '"-1"', '"' + "9" * 20 + '"'):
            path = "/v1/reservations/x/cancel"
            assert post(client, path, {}, **{"If-Match": tag}).json()["pointer"] == "/If-Match"


@pytest.mark.parametrize(
    ("batch", "pointer"),
    [
        ({}, "/commands"),
        ({"commands": {}}, "/commands"),
        ({"commands": [], "dry": True}, "/dry"),
        ({"commands": [1]}, "/commands/0/key"),
        ({"commands": [{"command": "OpenPool"}]}, "/commands/0/key"),
        ({"commands": [{"command": [], "key": "k"}]}, "/commands/0/command"),
        ({"commands": [{"command": "Open", "key": "k"}]}, "/commands/0/command"),
        ({"commands": [{"command": "OpenPool", "key": "a\0b"}]}, "/commands/0/key"),
        ({"commands": [{"command": "OpenPool", "key": "\ud800"}]}, "/commands/0/key"),
        ({"commands": [{"command": "OpenPool", "key": 1}]}, "/commands/0/key"),
        ({"commands": [{"command": "OpenPool", "key": "k", "at": 1}]}, "/commands/0/at"),
        ({"commands": [{"command": "OpenPool", "key": "k", "body": None}]}, "/commands/0/body"),
        ({"commands": [{"command": "OpenPool", "key": "k"}]}, "/commands/0/body/pool_id"),
    ],
)
def test_a_wrong_command_of_a_batch_is_pointed_at_and_none_is_done(
    running: Running, batch: dict[str, Any], pointer: str
) -> None:
    good = {"command": "RequestReservation", "key": uuid.uuid4().hex, "body": BOOK}
    if isinstance(batch.get("commands"), list) and batch["commands"]:
        batch = {**batch, "commands": [*batch["commands"], good]}
    with running.http() as client:
        answer = client.post("/v1/batch", content=json.dumps(batch))
        assert is_problem(answer, 400), answer.text
        assert answer.json()["pointer"] == pointer
        first = post(client, "/v1/reservations", BOOK, **{"Idempotency-Key": str(good["key"])})
        assert not first.json()["repeat"]


def test_a_key_too_long_is_the_one_command_that_is_rejected(running: Running) -> None:
    commands = [
        {"command": "RequestReservation", "key": key, "body": BOOK}
        for key in (uuid.uuid4().hex, "k" * 256, uuid.uuid4().hex)
    ]
    with running.http() as client:
        outcomes = client.post("/v1/batch", json={"commands": commands}).json()["outcomes"]
    assert [told["outcome"] for told in outcomes] == ["accepted", "rejected", "accepted"]


def test_what_no_store_can_hold_is_refused(running: Running) -> None:
    with running.http() as client:
        for body in (BOOK | {"tenant_id": "\ud800"}, BOOK | {"tags": {"a": "x\0"}}):
            headers = {"Idempotency-Key": "odd"}
            answer = client.post("/v1/reservations", content=json.dumps(body), headers=headers)
            assert is_problem(answer, 400), answer.text


def test_a_dry_run_is_never_taken_for_a_booking(running: Running) -> None:
    with running.http() as client:
        assert post(client, "/v1/reservations?dry_run=1", BOOK).json()["pointer"] == "/dry_run"
        told = post(client, "/v1/reservations?dry_run=true", BOOK)
        assert told.status_code == 200
        assert "location" not in told.headers


def test_a_body_may_not_contradict_its_path(running: Running) -> None:
    with running.http() as client:
        answer = post(client, "/v1/nodes/node-01/cordon", {"node_id": "node-02"})
        assert (answer.status_code, answer.json()["pointer"]) == (400, "/node_id")


def test_a_body_without_a_length_is_cut_off_at_the_limit(running: Running) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(32):
            yield b" " * (1 << 16)

    with running.http() as client:
        headers = {"Idempotency-Key": "long"}
        answer = client.post("/v1/reservations", content=chunks(), headers=headers)
        assert is_problem(answer, 413)


def test_routes_that_do_not_exist_are_problems_too(running: Running) -> None:
    with running.http() as client:
        assert is_problem(client.get("/v1/nowhere"), 404)
        assert is_problem(client.delete("/v1/pools"), 405)


def test_only_a_bearer_is_a_bearer(running: Running) -> None:
    token = running.service.tokens["operator"]
    for words in (f"Basic {token}", token, "Bearer", "Bearer wrong"):
        answer = httpx.get(running.service.url + "/v1/status", headers={"Authorization": words})
        assert is_problem(answer, 401), words
        assert answer.headers["www-authenticate"] == "Bearer"


def test_who_reclaims_is_not_told_from_whom(running: Running) -> None:
    borrow = BOOK | {"tenant_id": "team-b", "size": {"nodes": 8}, "klass": "borrowed"}
    with running.http("team-a") as mine, running.http("team-b") as theirs, running.http() as all_:
        lent = post(theirs, "/v1/reservations", borrow | {"duration_seconds": 7200})
        assert lent.status_code == 201, lent.text
        ask = BOOK | {"size": {"nodes": 9}, "duration_seconds": 3600}
        got = post(mine, "/v1/reservations", ask)
        assert got.status_code == 201, got.text
        seq = got.json()["seq_to"]
        told = all_.get(
            "/v1/events", params={"after": max(0, seq - 40), "limit": 100, "min_seq": seq}
        )
        assert "PreemptionOrdered" in told.text, "the case is about a reclaim"
        foreign = (lent.json()["id"], "team-b")
        for path in (
            f"/v1/events?after={max(0, seq - 40)}&limit=100",
            f"/v1/reservations/{got.json()['id']}?min_seq={seq}",
            f"/v1/why/{got.json()['id']}",
            "/v1/calendar",
        ):
            answer = mine.get(path)
            assert answer.status_code == 200, path
            assert not any(word in answer.text for word in foreign), path
        assert not any(word in got.text for word in foreign)


def test_a_refusal_is_told_again_with_no_more_than_the_first_time(running: Running) -> None:
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat(timespec="seconds")
    with running.http("team-a") as mine, running.http() as all_:
        taken = BOOK | {"tenant_id": "team-b", "start": tomorrow, "duration_seconds": 7200}
        assert post(all_, "/v1/reservations", taken).status_code == 201
        ask = BOOK | {"size": {"nodes": 16}, "start": tomorrow, "duration_seconds": 3600}
        refused = post(mine, "/v1/reservations", ask)
        assert refused.json()["reason"] == "capacity", refused.text
        path = f"/v1/why/{refused.json()['command_id']}"
        eventually(lambda: mine.get(path).status_code == 200)
        assert mine.get(path).json()["request"]["evidence"] == refused.json()["facts"]
        assert "free_milli" in all_.get(path).json()["request"]["evidence"]


def test_a_tenant_hears_of_the_life_of_its_own(running: Running) -> None:
    with running.http("team-b") as client:
        booked = post(client, "/v1/reservations", BOOK | {"tenant_id": "team-b"}).json()
        after = {"after": booked["seq_to"] - 1, "limit": 100}

        def heard() -> set[str]:
            events = client.get("/v1/events", params=after).json()["events"]
            own = [e for e in events if e["stream"] == f"reservation/{booked['id']}"]
            return {event["type"].split(".")[0] for event in own}

        eventually(lambda: {"ReservationConfirmed", "ReservationStarted"} <= heard())
        assert client.get("/v1/status").json()["pools"][0]["held_milli"] >= 1000

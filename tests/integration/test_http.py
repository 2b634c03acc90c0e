"""The HTTP face: who may, what is malformed, what is remembered."""

import uuid
from typing import Any

import httpx
import pytest

from connectors.http.verbs import ROUTES
from domain.access import COMMAND_VERBS, READ_VERBS
from domain.principal import Role
from tests.integration.conftest import Running, eventually

WHO = {
    "operator": Role.OPERATOR,
    "finance": Role.FINANCE,
    "auditor": Role.AUDITOR,
    "service": Role.SERVICE,
    "team-a": Role.TENANT,
}
BOOK: dict[str, Any] = {
    "tenant_id": "team-a",
    "pool_id": "main",
    "size": {"gpus": 1},
    "start": None,
    "duration_seconds": 60,
}


def post(client: httpx.Client, path: str, body: Any, key: str = "") -> httpx.Response:
    return client.post(path, json=body, headers={"Idempotency-Key": key or uuid.uuid4().hex})


def test_health_needs_no_token_and_everything_else_does(running: Running) -> None:
    assert httpx.get(f"{running.service.url}/v1/health").json()["status"] == "ok"
    answer = httpx.get(f"{running.service.url}/v1/status")
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    wrong = {"Authorization": "Bearer nobody"}
    assert httpx.get(f"{running.service.url}/v1/status", headers=wrong).status_code == 401


@pytest.mark.parametrize("who", WHO)
def test_every_command_is_for_its_roles_only(running: Running, who: str) -> None:
    with running.http(who) as client:
        for route in ROUTES:
            verb = COMMAND_VERBS[route.command.__name__]
            path = route.path.replace("{", "").replace("}", "")
            answer = post(client, path, _least(route.command))
            if WHO[who] not in verb.roles:
                assert (answer.status_code, answer.json()["reason"]) == (403, "forbidden"), path
            else:
                assert answer.status_code != 403, (path, answer.json())


def _least(command: type[Any]) -> dict[str, Any]:
    """A body with every needed field, of the right type."""
    from connectors.scenarios.reading import START
    from schemas.json_form import json_schema

    def fill(schema: dict[str, Any]) -> Any:
        if "anyOf" in schema:
            return None
        if "enum" in schema:
            return schema["enum"][0]
        if "contentEncoding" in schema:
            return "00"
        kinds = {"integer": 1, "boolean": False, "array": [], "string": "x"}
        if schema["type"] == "object":
            properties = schema.get("properties", {})
            return {name: fill(properties[name]) for name in schema.get("required", ())}
        return START if schema.get("format") == "date-time" else kinds[schema["type"]]

    body = fill(json_schema(command))
    in_path = set(command.__dataclass_fields__)
    route = next(r for r in ROUTES if r.command is command)
    named = {name for name in in_path if "{" + name + "}" in route.path}
    return {name: value for name, value in body.items() if name not in named}


@pytest.mark.parametrize("who", WHO)
def test_every_read_is_for_its_roles_only(running: Running, who: str) -> None:
    paths = {
        "status": "/v1/status",
        "pools": "/v1/pools",
        "nodes": "/v1/nodes",
        "tenants": "/v1/tenants",
        "quota": "/v1/quota",
        "reservations": "/v1/reservations",
        "calendar": "/v1/calendar",
        "calendar_feed": "/v1/calendar.ics",
        "usage": "/v1/usage",
        "prices": "/v1/price-books",
        "periods": "/v1/periods",
        "pool_hours": "/v1/pool-hours",
        "events": "/v1/events",
        "projections": "/v1/projections",
        "whoami": "/v1/whoami",
        "plans": "/v1/plan?pool_id=main",
        "queue": "/v1/queue?pool_id=main",
        "what_if": "/v1/plan/what-if?pool_id=main&quota=team-a=1",
    }
    with running.http(who) as client:
        for verb, path in paths.items():
            expected = 200 if WHO[who] in READ_VERBS[verb].roles else 403
            assert client.get(path).status_code == expected, (who, verb)


def test_quota_says_what_is_held_of_it_now(running: Running) -> None:
    def held(client: httpx.Client) -> int:
        (grant,) = [
            q for q in client.get("/v1/quota").json()["quota"] if q["tenant_id"] == "team-a"
        ]
        return int(grant["committed_milli"])

    with running.http("team-a") as mine:
        before = held(mine)
        now = BOOK | {"start": None, "duration_seconds": 3600, "end": None}
        booked = post(mine, "/v1/reservations", {k: v for k, v in now.items() if v or k == "start"})
        assert booked.status_code == 201, booked.text
        eventually(lambda: held(mine) > before)
        post(mine, f"/v1/reservations/{booked.json()['id']}/cancel", {})
        post(mine, f"/v1/reservations/{booked.json()['id']}/give-back", {})
        eventually(lambda: held(mine) == before)


def test_a_tenant_sees_what_ails_the_nodes_that_it_holds_and_no_others(running: Running) -> None:
    def nodes(client: httpx.Client, path: str) -> set[str]:
        return {row["node_id"] for row in client.get(path).json()["nodes"]}

    with running.http("team-a") as mine, running.http() as operator:
        booked = post(mine, "/v1/reservations", BOOK).json()
        path = f"/v1/reservations/{booked['id']}?min_seq={booked['seq_to']}"
        eventually(lambda: mine.get(path).json()["units"])
        held = {unit["node_id"] for unit in mine.get(path).json()["units"]}
        eventually(lambda: held <= nodes(mine, "/v1/node-health"))
        everyone = nodes(operator, "/v1/node-health")
        assert everyone == nodes(operator, "/v1/nodes")
        assert nodes(mine, "/v1/node-health") < everyone
        post(mine, f"/v1/reservations/{booked['id']}/give-back", {})


def test_what_is_left_of_quota_is_told_by_role(running: Running) -> None:
    asked: dict[str, str | int] = {
        "pool_id": "main",
        "tenant_id": "team-a",
        "duration_seconds": 60,
    }
    with running.http("team-a") as mine, running.http("team-b") as theirs, running.http() as all_:
        told = mine.get("/v1/quota/usable", params=asked).json()["usable"]
        assert [each["class"] for each in told] == ["guaranteed", "borrowed"]
        assert told[0]["binding"]["tenant_id"] == "team-a"
        assert 0 < told[0]["milli"] <= 128_000
        assert theirs.get("/v1/quota/usable", params=asked).status_code == 404
        wrongs: list[dict[str, str | int]] = [
            {"pool_id": ""},
            {"duration_seconds": 0},
            {"start": "soon"},
        ]
        for wrong in wrongs:
            assert mine.get("/v1/quota/usable", params=asked | wrong).status_code == 400, wrong
        assert mine.get("/v1/quota/usable", params=asked | {"pool_id": "no"}).status_code == 404
        odd = all_.get("/v1/quota/oddities").json()["oddities"]
        assert {each["kind"] for each in odd} == {"promised-beyond-capacity"}
    shown = running.cli("--as", "team-a", "quota", "usable", "--for", "4h")
    assert (shown.returncode, "team-a in main" in shown.stdout) == (0, True), shown.stderr
    assert running.cli("quota", "check").returncode == 1


def test_a_stranger_finds_nothing_of_another_tenant(running: Running) -> None:
    with running.http("team-a") as mine, running.http("team-b") as theirs:
        booked = post(mine, "/v1/reservations", BOOK).json()
        eventually(lambda: mine.get(f"/v1/reservations/{booked['id']}").status_code == 200)
        assert theirs.get(f"/v1/reservations/{booked['id']}").status_code == 404
        assert theirs.get(f"/v1/why/{booked['id']}").status_code == 404
        answer = post(theirs, f"/v1/reservations/{booked['id']}/give-back", {})
        assert answer.status_code == 404
        assert booked["id"] not in str(theirs.get("/v1/calendar").json())
        assert booked["id"] not in str(theirs.get("/v1/events?limit=1000").json())
        assert theirs.get(f"/v1/plan/explain/{booked['id']}").status_code == 404
        assert theirs.get("/v1/reservations/nothing-at-all").status_code == 404
        with running.http("auditor") as auditor:
            events = auditor.get("/v1/events?limit=1000").json()["events"]
        subject = f"reservation/{booked['id']}"
        denied = {
            (e["fact"]["verb"], e["fact"]["tenant_id"])
            for e in events
            if e["type"].startswith("AccessDenied.") and e["fact"]["subject"] == subject
        }
        verbs = ("reservation", "why", "explain", "GiveBack")
        assert denied == {(verb, "team-b") for verb in verbs}
        assert not any(e["fact"].get("subject", "").endswith("all") for e in events)
        foreign = post(theirs, "/v1/reservations", BOOK)
        assert (foreign.status_code, foreign.json()["reason"]) == (404, "not-found")


def test_a_plan_is_explained_supposed_and_drawn(running: Running) -> None:
    later = "2027-03-01T09:00:00Z"
    big = BOOK | {"start": later, "size": {"nodes": 15}, "duration_seconds": 3600}
    with running.http("operator") as us, running.http("team-b") as theirs:
        mine = post(us, "/v1/reservations", big).json()["id"]
        asked = {**big, "tenant_id": "team-b", "size": {"nodes": 2}}
        refused = post(theirs, "/v1/reservations", asked).json()
        assert refused.get("reason") == "capacity", refused
        why = theirs.get(f"/v1/plan/explain/{refused['command_id']}").json()
        assert (why["others_in_the_way"], why["in_the_way"]) == (True, [])
        assert mine not in str(why)
        assert [near["change"] for near in why["nearest"]] == ["later", "fewer"]
        assert us.get(f"/v1/plan/explain/{refused['command_id']}").json()["enough"]
        assert theirs.get(f"/v1/plan/explain/{mine}").status_code == 404
        here = us.get(f"/v1/plan/explain/{mine}").json()
        assert len(here["here"]) == 15
        assert here["placed"][0]["by"] == "placer"
        lost = here["here"][0]
        query = {"pool_id": "main", "lost": lost}
        told = us.get("/v1/plan/what-if", params=query).json()
        assert mine in [move["reservation_id"] for move in told["moves"]]
        window = {"from": "2027-03-01T00:00:00Z", "to": "2027-03-02T00:00:00Z"}
        shown = us.get("/v1/plan", params={"pool_id": "main", **window}).json()
        assert sum(bar["reservation_id"] == mine for bar in shown["held"]) == 15
        drawn = us.get("/v1/plan", params={"pool_id": "main", "svg": "true", **window})
        assert drawn.headers["content-type"].startswith("image/svg+xml")
        assert mine in drawn.text
        post(us, f"/v1/reservations/{mine}/cancel", {})


@pytest.mark.parametrize(
    "query",
    ["", "pool_id=main", "pool_id=main&quota=a", "pool_id=main&gpus=1", "pool_id=nope&lost=n"],
)
def test_what_cannot_be_supposed_is_said(running: Running, query: str) -> None:
    with running.http("operator") as us:
        answer = us.get(f"/v1/plan/what-if?{query}")
    assert answer.status_code in {400, 404}
    assert answer.json()["detail"]


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"size": {"gpus": "8"}}, "/size/gpus"),
        ({"size": {"gpus": 2**63}}, "/size/gpus"),
        ({"size": {"gpus": 1.5}}, "/size/gpus"),
        ({"size": {"tpus": 1}}, "/size/tpus"),
        ({"start": "2030-01-01T09:00:00"}, "/start"),
        ({"start": "tomorrow"}, "/start"),
        ({"start": 5}, "/start"),
        ({"klass": "royal"}, "/klass"),
        ({"colour": "red"}, "/colour"),
        ({"tags": {"a": 1}}, "/tags/a"),
        ({"tenant_id": None}, "/tenant_id"),
    ],
)
def test_a_malformed_field_is_pointed_at(running: Running, change: Any, pointer: str) -> None:
    with running.http() as client:
        before = client.get("/v1/health").json()["head"]
        answer = post(client, "/v1/reservations", BOOK | change)
        assert (answer.status_code, answer.json()["pointer"]) == (400, pointer)
        assert client.get("/v1/health").json()["head"] <= before + 1


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        ({"size": {"gpus": 0}}, 422, "size-invalid"),
        ({"size": {"gpus": -1}}, 422, "size-invalid"),
        ({"size": {"gpus": 2**63 - 1}}, 422, "size-invalid"),
        ({"size": {"share_milli": 1001}}, 422, "size-invalid"),
        ({"duration_seconds": 0}, 422, "window-invalid"),
        ({"duration_seconds": 100 * 366 * 86_400}, 422, "window-invalid"),
        ({"pool_id": "nowhere"}, 404, "not-found"),
        ({"tenant_id": "nobody"}, 404, "not-found"),
        ({"shape": {"models": ["B900"]}}, 422, "shape-impossible"),
    ],
)
def test_a_silly_ask_has_a_reason_of_its_own(
    running: Running, change: Any, status: int, reason: str
) -> None:
    with running.http() as client:
        answer = post(client, "/v1/reservations", BOOK | change)
        assert (answer.status_code, answer.json()["reason"]) == (status, reason)


def test_a_body_that_is_no_json_or_too_large_is_refused(running: Running) -> None:
    with running.http() as client:
        headers = {"Idempotency-Key": "x", "Content-Type": "application/json"}
        assert client.post("/v1/nodes", content=b"{", headers=headers).status_code == 400
        assert client.post("/v1/nodes", content=b"[]", headers=headers).status_code == 400
        large = b'{"a": "' + b"x" * (1 << 20) + b'"}'
        assert client.post("/v1/nodes", content=large, headers=headers).status_code == 413
        assert client.post("/v1/nodes", json={}).json()["field"] == "Idempotency-Key"
        many = {"commands": [{"command": "OpenPool", "key": "k"}] * 501}
        assert post(client, "/v1/batch", many).json()["pointer"] == "/commands"


def test_a_key_is_remembered_with_its_body(running: Running) -> None:
    with running.http("team-b") as client:
        body = BOOK | {"tenant_id": "team-b"}
        first = post(client, "/v1/reservations", body, "the-key").json()
        again = post(client, "/v1/reservations", body, "the-key").json()
        assert again["repeat"]
        assert again["id"] == first["id"]
        other = post(client, "/v1/reservations", body | {"size": {"gpus": 2}}, "the-key")
        assert (other.status_code, other.json()["reason"]) == (409, "key-reused")
        assert {"first_fingerprint", "this_fingerprint"} <= other.json()["facts"].keys()


def test_an_etag_guards_a_change(running: Running) -> None:
    with running.http("team-b") as client:
        body = BOOK | {"tenant_id": "team-b", "duration_seconds": 3600}
        booked = post(client, "/v1/reservations", body).json()
        path = f"/v1/reservations/{booked['id']}"
        eventually(lambda: client.get(path).status_code == 200)
        headers = {"Idempotency-Key": uuid.uuid4().hex, "If-Match": '"99"'}
        stale = client.post(f"{path}/give-back", json={}, headers=headers)
        assert (stale.status_code, stale.json()["reason"]) == (412, "stale-version")
        headers = {
            "Idempotency-Key": uuid.uuid4().hex,
            "If-Match": client.get(path).headers["etag"],
        }
        assert client.post(f"{path}/give-back", json={}, headers=headers).status_code == 200


def test_a_dry_run_books_nothing(running: Running) -> None:
    with running.http() as client:
        before = client.get("/v1/health").json()["head"]
        headers = {"Idempotency-Key": "dry"}
        told = client.post("/v1/reservations?dry_run=true", json=BOOK, headers=headers).json()
        assert told["facts"][0]["type"] == "ReservationConfirmed.v1"
        found = client.get("/v1/events", params={"after": before, "limit": 100}).json()["events"]
        assert "dry" not in str(found)
        fits = client.get(
            "/v1/availability", params={"pool_id": "main", "gpus": 1, "tenant_id": "team-a"}
        )
        assert fits.json()["fits"] is True


def test_events_come_live(running: Running) -> None:
    with running.http("auditor") as client:
        headers = {"Accept": "text/event-stream"}
        with client.stream("GET", "/v1/events?after=0", headers=headers) as stream:
            lines = stream.iter_lines()
            assert next(lines) == "id: 1"
            assert next(lines).startswith("event: LeaseTaken")


def test_the_pages_need_nothing_from_outside(running: Running) -> None:
    for path in ("/", "/docs", "/style.css", "/openapi.json", "/metrics"):
        answer = httpx.get(running.service.url + path)
        assert answer.status_code == 200, path
        assert "https://" not in answer.text, path


def test_the_calendar_asks_a_browser_for_a_token_and_only_the_calendar_has_it(
    running: Running,
) -> None:
    token = running.service.tokens["team-a"]
    with httpx.Client(base_url=running.service.url) as browser:
        asked = browser.get("/calendar")
        assert (asked.status_code, "alert" in asked.text) == (401, False)
        assert 'name="token"' in asked.text
        wrong = browser.post("/calendar", data={"token": "nobody's"})
        assert (wrong.status_code, "alert" in wrong.text) == (401, True)
        assert not browser.cookies
        right = browser.post("/calendar", data={"token": token})
        assert (right.status_code, right.headers["location"]) == (303, "/calendar")
        kept = right.headers["set-cookie"].lower()
        assert all(word in kept for word in ("httponly", "samesite=strict", "path=/calendar"))
        shown = browser.get("/calendar")
        assert shown.status_code == 200
        assert "Next" in shown.text or "next" in shown.text
        assert browser.get("/v1/status").status_code == 401
    service = {"Cookie": f"gpuledger_token={running.service.tokens['service']}"}
    assert httpx.get(f"{running.service.url}/calendar", headers=service).status_code == 401

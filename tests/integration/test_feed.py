"""Reservations as iCalendar, read back with the library that calendars use."""

import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from icalendar import Calendar

from connectors.http.feed import FEED_EVENTS_MAX, icalendar
from tests.integration.conftest import Running, eventually

START = datetime(2027, 3, 1, 9, tzinfo=UTC)


def book(running: Running, tenant: str, day: int, **more: Any) -> tuple[str, int]:
    """A reservation of two hours of a March that nobody else books: its id and position."""
    start = START.replace(day=day)
    body = {
        "tenant_id": tenant,
        "pool_id": "main",
        "size": {"gpus": 2},
        "start": start.isoformat(),
        "end": (start + timedelta(hours=2)).isoformat(),
        **more,
    }
    return done(running, "/v1/reservations", body)


def done(running: Running, path: str, body: dict[str, Any]) -> tuple[str, int]:
    with running.http() as client:
        answer = client.post(path, json=body, headers={"Idempotency-Key": uuid.uuid4().hex})
    assert answer.status_code in {200, 201}, answer.text
    return answer.json().get("id", ""), answer.json()["seq_to"]


def events(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/calendar")
    found = Calendar.from_ical(answer.content).walk("VEVENT")
    return {str(event["UID"]).removesuffix("@gpuledger"): event for event in found}


def feed(client: httpx.Client, day: int, seq: int, **more: str) -> httpx.Response:
    start = START.replace(day=day)
    window = {"from": start.isoformat(), "to": (start + timedelta(hours=3)).isoformat()}
    return client.get("/v1/calendar.ics", params={**window, "min_seq": str(seq), **more})


def test_a_reservation_is_an_event_with_its_id_for_ever(running: Running) -> None:
    booked, seq = book(running, "team-a", 2)
    with running.http("team-a") as client:
        path = f"/v1/reservations/{booked}/calendar.ics"
        event = events(client.get(path, params={"min_seq": seq}))[booked]
        again = client.get(path).content
        assert again == client.get(path).content
    assert event.decoded("dtstart") == START.replace(day=2)
    assert event.decoded("dtend") == START.replace(day=2, hour=11)
    assert str(event["SUMMARY"]) == "2 GPUs in main, confirmed"
    assert str(event["STATUS"]) == "CONFIRMED"


def test_a_later_reading_of_a_changed_reservation_comes_after_the_earlier_one(
    running: Running,
) -> None:
    booked, seq = book(running, "team-a", 3)
    end = START.replace(day=3, hour=12)
    with running.http("team-a") as client:
        before = events(feed(client, 3, seq))[booked]
        _, seq = done(running, f"/v1/reservations/{booked}/extend", {"end": end.isoformat()})
        after = events(feed(client, 3, seq))[booked]
    assert after.decoded("dtend") == end
    assert int(after["SEQUENCE"]) > int(before["SEQUENCE"])
    assert after.decoded("dtstamp") >= before.decoded("dtstamp")


def test_a_hold_is_tentative_and_a_cancelled_one_leaves_the_feed(running: Running) -> None:
    held, seq = book(running, "team-a", 4, hold_seconds=600)
    with running.http("team-a") as client:
        assert str(events(feed(client, 4, seq))[held]["STATUS"]) == "TENTATIVE"
        _, seq = done(running, f"/v1/reservations/{held}/cancel", {})
        assert events(feed(client, 4, seq)) == {}
        alone = events(client.get(f"/v1/reservations/{held}/calendar.ics"))
    assert str(alone[held]["STATUS"]) == "CANCELLED"


def test_what_was_given_back_ends_when_it_was(running: Running) -> None:
    now = datetime.now(UTC)
    end = (now + timedelta(hours=2)).replace(microsecond=0)
    booked, _ = book(running, "team-a", 5, start=None, end=end.isoformat())
    eventually(lambda: datetime.now(UTC) > now + timedelta(seconds=2))
    _, seq = done(running, f"/v1/reservations/{booked}/give-back", {})
    with running.http("team-a") as client:
        path = f"/v1/reservations/{booked}/calendar.ics"
        event = events(client.get(path, params={"min_seq": seq}))[booked]
    assert event.decoded("dtstart") < event.decoded("dtend") < now + timedelta(hours=1)


def test_what_was_given_back_at_once_takes_no_time() -> None:
    start = int(START.timestamp() * 1_000_000)
    row = {
        "reservation_id": "r",
        "tenant_id": "team-a",
        "pool_id": "main",
        "klass": "guaranteed",
        "state": "given-back",
        "milli": 250,
        "short_milli": 0,
        "open_ended": 0,
        "start": start,
        "end": start,
        "intent_version": 2,
        "recorded_at": start,
    }
    (event,) = Calendar.from_ical(icalendar([row])).walk("VEVENT")
    assert event.decoded("dtstart") == START
    assert "dtend" not in event
    assert str(event["SUMMARY"]) == "0.25 GPUs in main, given-back"


def test_a_tenant_finds_its_own_and_an_operator_any(running: Running) -> None:
    mine, _ = book(running, "team-a", 6)
    theirs, seq = book(running, "team-b", 6)
    with running.http("team-a") as client:
        assert events(feed(client, 6, seq)).keys() == {mine}
        assert events(feed(client, 6, seq, tenant_id="team-b")) == {}
        answer = client.get(f"/v1/reservations/{theirs}/calendar.ics")
        assert (answer.status_code, answer.json()["reason"]) == (404, "not-found")
    with running.http() as client:
        assert events(feed(client, 6, seq)).keys() == {mine, theirs}
        assert events(feed(client, 6, seq, tenant_id="team-b")).keys() == {theirs}


def test_a_feed_that_is_too_long_is_refused_and_not_cut(running: Running) -> None:
    start = START.replace(day=8)
    body = {
        "tenant_id": "team-b",
        "pool_id": "main",
        "size": {"share_milli": 1},
        "start": start.isoformat(),
        "duration_seconds": 60,
    }
    seq = 0
    with running.http() as client:
        for many in (500, 500, 1):
            if seq:
                assert len(events(feed(client, 8, seq))) <= FEED_EVENTS_MAX
            commands = [
                {"key": uuid.uuid4().hex, "command": "RequestReservation", "body": body}
                for _ in range(many)
            ]
            answer = client.post("/v1/batch?brief=true", json={"commands": commands})
            seq = max(outcome["seq_to"] for outcome in answer.json()["outcomes"])
        refused = feed(client, 8, seq)
    assert (refused.status_code, refused.json()["reason"]) == (422, "limit")


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("from=soon", "/from"),
        ("from=2030-01-01T00:00:00", "/from"),
        ("from=2030-01-02T00:00:00Z&to=2030-01-01T00:00:00Z", "/to"),
        ("min_seq=-1", "/min_seq"),
    ],
)
def test_a_feed_that_makes_no_sense_is_pointed_at(
    running: Running, query: str, pointer: str
) -> None:
    with running.http() as client:
        answer = client.get(f"/v1/calendar.ics?{query}")
    assert (answer.status_code, answer.json()["pointer"]) == (400, pointer)


def test_the_command_line_writes_files_that_calendars_take(
    running: Running, tmp_path: Path
) -> None:
    booked, seq = book(running, "team-b", 7)
    with running.http() as client:
        feed(client, 7, seq)
    one, all_of_it = tmp_path / "one.ics", tmp_path / "all.ics"
    assert running.cli("reservation", "ics", booked, "--out", str(one)).returncode == 0
    words = ("--from", "2027-03-07T00:00:00Z", "--for", "24h", "--tenant", "team-b")
    assert running.cli("calendar", "--ics", str(all_of_it), *words).returncode == 0
    assert one.read_bytes() == all_of_it.read_bytes()
    assert booked.encode() in one.read_bytes()
    missing = running.cli("reservation", "ics", "nothing", "--out", str(tmp_path / "none.ics"))
    assert missing.returncode == 1
    assert not (tmp_path / "none.ics").exists()
    nowhere = running.cli("reservation", "ics", booked, "--out", str(tmp_path / "no" / "x.ics"))
    assert nowhere.returncode == 1
    assert "Traceback" not in nowhere.stderr

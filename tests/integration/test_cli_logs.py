"""Verbs of the log: events, projections, schemas, a reservation's history."""

import json

from tests.integration.conftest import Running, eventually


def test_the_log_is_shown_event_by_event(running: Running) -> None:
    listed = json.loads(running.cli("events", "list", "--limit", "5", "--json").stdout)["events"]
    assert [event["seq"] for event in listed] == [1, 2, 3, 4, 5]
    shown = json.loads(running.cli("events", "show", "3", "--json").stdout)
    assert shown == listed[2]
    assert running.cli("events", "show", "999999").returncode == 1
    assert running.cli("events", "show", "0").returncode == 2


def test_a_tenant_is_not_shown_what_is_not_its_own(running: Running) -> None:
    assert running.cli("--as", "team-a", "events", "show", "1").returncode == 1


def test_a_reservation_tells_its_history(running: Running) -> None:
    booked = json.loads(
        running.cli("reserve", "--gpus", "1", "--for", "1m", "--tenant", "team-a", "--json").stdout
    )

    def told() -> list[str]:
        done = running.cli("reservation", "history", booked["id"], "--json")
        events = json.loads(done.stdout).get("events", ()) if done.stdout else ()
        return [event["type"].split(".")[0] for event in events]

    eventually(lambda: told()[:1] == ["ReservationConfirmed"])


def test_read_models_say_how_far_they_are(running: Running) -> None:
    rows = json.loads(running.cli("projection", "list", "--json").stdout)["projections"]
    assert {"calendar", "fleet", "reservations", "requests", "usage"} <= {r["name"] for r in rows}
    assert not any(row["poison"] for row in rows)


def test_contracts_need_no_service(running: Running) -> None:
    rows = json.loads(running.cli("schema", "list", "--json").stdout)["schemas"]
    assert {"QuotaGranted.v1", "RequestReservation.v1"} <= {row["name"] for row in rows}
    assert all(row.keys() >= {"name", "version", "id", "file"} for row in rows)
    shown = json.loads(running.cli("schema", "show", "QuotaGranted", "--json").stdout)
    assert shown["name"] == "QuotaGranted"
    assert running.cli("schema", "show", "Nothing").returncode == 1

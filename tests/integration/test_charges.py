"""Money against a running service: prices, a close that is refused, one that holds, and its proof."""

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from connectors.exports.charges import read_file
from tests.billing import lint
from tests.integration.conftest import Running, eventually


def text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_month_is_priced_closed_and_proven(running: Running, tmp_path: Path) -> None:
    booked = running.cli("--as", "team-b", "reserve", "--gpus", "2", "--for", "1h", "--json")
    name = json.loads(booked.stdout)["id"]

    def is_running() -> bool:
        with running.http() as client:
            told = client.get("/v1/events", params={"limit": 500}).text
        return name in told and "UnitsApplied" in told

    eventually(is_running)
    time.sleep(1.1)
    now = datetime.now(UTC)
    span = ("--from", text(now - timedelta(days=1)), "--to", text(now))
    early = running.cli("--as", "finance", "charges", "close", "team-b", *span)
    assert early.returncode == 1
    assert f"{now:%Y-%m-%dT%H}:00:00Z: no price book holds" in early.stderr
    assert periods(running, "finance") == []

    publish = ("price", "publish", "standard", "--from", "2026-01-01T00:00:00Z")
    rates = ("--rate", "reserved_used=2.50", "--rate", "overflow@H100=3.1", "--discount", "20")
    assert running.cli("--as", "finance", *publish, *rates).returncode == 0
    again = running.cli("--as", "finance", *publish, *rates, "--json")
    assert json.loads(again.stdout)["reason"] == "wrong-state"
    assert "overflow" in running.cli("--as", "team-a", "price", "list").stdout
    assert running.cli("tenant", "register", "team-c").returncode == 0
    book = ("price", "publish", "of-two", "--rate", "overrun=9")
    both = ("--tenant", "team-a", "--tenant", "team-c")
    assert running.cli("--as", "finance", *book, *both).returncode == 0
    eventually(lambda: books(running, "team-a") == ["of-two", "standard"])
    with running.http("team-a") as client:
        assert "team-c" not in client.get("/v1/price-books").text, "others are nobody's business"
    assert books(running, "team-b") == ["standard"]
    assert books(running, "finance") == ["of-two", "standard"]

    closed = running.cli("--as", "finance", "charges", "close", "team-b", *span, "--json")
    assert closed.returncode == 0, closed.stderr
    sealed = json.loads(closed.stdout)["sealed"]
    assert sealed["rows"] >= 1
    eventually(lambda: [p["state"] for p in periods(running, "team-b")] == ["closed"])
    done = running.cli("--as", "finance", "charges", "close-hours", "--json")
    assert (done.returncode, json.loads(done.stdout)["closed"]) == (0, []), "no hour is over yet"
    assert running.cli("--as", "team-a", "charges", "hours").returncode == 1
    assert json.loads(running.cli("charges", "hours", "--json").stdout) == {"pool_hours": []}
    assert periods(running, "team-b")[0]["row_root"] == sealed["row_root"]
    assert periods(running, "team-a") == []

    file = tmp_path / "charges.csv"
    done = running.cli("charges", "export", "--out", str(file), "--account", "team-b")
    assert done.returncode == 0, done.stderr
    rows = list(read_file(file))
    lint(rows)
    invoiced = [row for row in rows if row["InvoiceId"]]
    assert len(invoiced) == sealed["rows"]
    assert {row["ResourceId"] for row in invoiced} == {name}
    into = ("charges", "export", "--parts", "--account", "team-b", "--out", str(tmp_path / "parts"))
    assert running.cli(*into).returncode == 0
    parts = [
        row for part in tmp_path.glob("parts/charges/*/*/*.parquet") for row in read_file(part)
    ]
    ids = [sorted(str(row["x_ChargeRecordId"]) for row in found) for found in (parts, rows)]
    assert ids[0] == ids[1]
    assert "is there already" in running.cli(*into).stderr
    done = running.cli("charges", "reconcile", "--parts", str(tmp_path / "parts"), "--json")
    assert done.returncode == 0, done.stdout
    bill = tmp_path / "bill.csv"
    bill.write_text("model,gpu_hours,amount\nH100,2,5.00\n")
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    span = ("--from", text(day - timedelta(days=1)), "--to", text(day))
    sent = ("charges", "import-invoice", str(bill), "--provider", "cloud", "--invoice", "i1")
    assert running.cli("--as", "finance", *sent, "--pool", "main", *span).returncode == 0
    done = running.cli("charges", "invoices", "--json")
    (line,) = json.loads(done.stdout)["invoices"]
    assert (done.returncode, line["difference"], line["verdict"]) == (1, "2", "DIFFERS")
    assert running.cli("charges", "invoices", "--tolerance", "2").returncode == 0
    done = running.cli("charges", "load", "--json")
    assert json.loads(done.stdout)["closed_rows_added"] == sealed["rows"]
    done = running.cli("charges", "reconcile", "--kept", "--json")
    assert (done.returncode, json.loads(done.stdout)["differences"]) == (0, [])
    done = running.cli("charges", "reconcile", "--json")
    assert (done.returncode, json.loads(done.stdout)["differences"]) == (0, [])


def books(running: Running, who: str) -> list[str]:
    with running.http(who) as client:
        found = client.get("/v1/price-books").json()["price_books"]
    return [book["book_id"] for book in found]


def periods(running: Running, who: str) -> list[dict[str, str]]:
    with running.http(who) as client:
        found: list[dict[str, str]] = client.get("/v1/periods").json()["periods"]
    return found

"""Past moments as known then and now, and what stands behind a reservation."""

import json
from collections.abc import Iterator

import pytest

from connectors.sequencer.engine import Sequencer
from connectors.wiring.replaying import LogHistory
from domain import commands as c
from domain.commands import Command
from domain.ids import GrantId, ReservationId
from domain.submission import Outcome, OutcomeKind, Submission
from domain.timespan import Instant
from schemas.image import hash_of, image_of
from schemas.json_form import instant_text
from schemas.registry import registry
from tests import builders as b
from tests.integration.conftest import Running, eventually
from tests.journals import furnished, shut


def say(sequencer: Sequencer, at: Instant, command: Command) -> Outcome:
    """A command at an instant."""
    contract, body = registry().encode(command)
    key = f"at-{sequencer.head.seq}"
    (outcome,) = sequencer.submit([Submission(b.OPERATOR, key, contract.type, body, at)])
    assert outcome.kind is OutcomeKind.ACCEPTED, outcome
    return outcome


@pytest.fixture
def sequencer(postgres_dsn: str) -> Iterator[Sequencer]:
    opened = furnished(postgres_dsn)
    yield opened
    shut(opened)


def test_a_moment_is_told_as_it_was_known_then_and_as_it_is_known_now(
    sequencer: Sequencer, postgres_dsn: str
) -> None:
    booked = say(sequencer, b.at(1), b.book(gpus=4, start=2, end=10))
    name = booked.facts[0].stream.removeprefix("reservation/")
    known_then = b.at(2.5)
    say(sequencer, b.at(2), b.book(gpus=8, start=20, end=21))
    seq_then = sequencer.head.seq
    state_then = hash_of(image_of(sequencer.ledger)).hex()
    say(sequencer, b.at(5), c.GiveBack(ReservationId(name)))
    history = LogHistory(postgres_dsn)

    then = history.replay(b.at(7), known_then)
    (holder,) = then["holders"]
    assert (holder["reservation_id"], holder["width_milli"]) == (name, 4_000)
    assert holder["end"] == instant_text(b.at(10))
    assert [(q["tenant_id"], q["held_milli"]) for q in then["quota"]] == [("a", 4_000)]
    assert then["as_known_at"] == instant_text(known_then)
    assert (then["seq"], then["state_hash"]) == (seq_then, state_then)

    now = history.replay(b.at(7), None)
    assert now["holders"] == []
    assert (now["seq"], now["as_known_at"]) == (sequencer.head.seq, "now")
    assert now["state_hash"] == hash_of(image_of(sequencer.ledger)).hex()

    before = history.replay(b.at(3), None)
    (holder,) = before["holders"]
    assert holder["end"] == instant_text(b.at(5)), "as it turned out"
    used = {(u["tenant_id"], u["state"]): u["gpu_microseconds"] for u in before["usage"]}
    capacity = sum(used.values())
    assert capacity == 16 * (b.at(3) - b.T0), "two nodes of eight, from when they joined"


def test_an_account_names_who_when_why_and_under_which_quota(
    sequencer: Sequencer, postgres_dsn: str
) -> None:
    (grant,) = sequencer.ledger.grants
    say(sequencer, b.at(0.5), c.AmendQuota(GrantId(grant), 12_000, 0, 0))
    booked = say(sequencer, b.at(1), b.book(gpus=4, start=2, end=10))
    amended = next(
        e.seq for e in sequencer.journal.read_all(0) if e.type.startswith("QuotaAmended.")
    )
    name = booked.facts[0].stream.removeprefix("reservation/")
    say(sequencer, b.at(3), c.GiveBack(ReservationId(name)))
    steps = LogHistory(postgres_dsn).explain(name)
    assert [s["what"] for s in steps][:2] == ["ReservationConfirmed", "ReservationStarted"]
    first = steps[0]
    assert (first["seq"], first["who"]) == (booked.seq_from, b.OPERATOR.id)
    assert (first["because"], first["command_id"]) == ("command", booked.command_id)
    assert [(q["seq"], q["nominal_milli"]) for q in first["quota"]] == [(amended, 12_000)]
    assert steps[1]["because"] == "timer"
    assert LogHistory(postgres_dsn).explain("nobody") == []


def test_an_auditor_asks_over_http_and_on_the_command_line(running: Running) -> None:
    made = json.loads(running.cli("reserve", "--gpus", "2", "--tenant", "team-a", "--json").stdout)
    name = made["id"]
    with running.http("auditor") as auditor, running.http("team-a") as tenant:
        account = auditor.get(f"/v1/accounts/{name}").json()
        assert account["steps"][0]["what"] == "ReservationConfirmed"
        assert auditor.get("/v1/accounts/nothing").status_code == 404
        assert tenant.get(f"/v1/accounts/{name}").status_code == 403
        assert auditor.get("/v1/replay").json()["pointer"] == "/as_of"
        asked = {"as_of": made["facts"][0]["start"]}
        found = auditor.get("/v1/replay", params=asked).json()
        assert name in {holder["reservation_id"] for holder in found["holders"]}
    told = running.cli("audit", "explain", name)
    assert (told.returncode, "ReservationConfirmed" in told.stdout) == (0, True), told.stderr
    eventually(lambda: running.cli("audit", "replay", "--as-of", "now").returncode == 0)
    shown = json.loads(running.cli("--json", "audit", "replay", "--as-of", "now").stdout)
    assert {u["state"] for u in shown["usage"]}
    assert running.cli("audit", "explain", "nothing").returncode == 1

"""The write path: poison is set apart, clocks are watched, a dry run leaves nothing."""

from typing import Any

import pytest

from connectors.memory.journal import MemoryJournal
from connectors.sequencer import engine
from connectors.sequencer.clock import ClockGuard
from domain.decide import decide
from domain.ids import NodeId, TenantId
from domain.journal import CommitUnknown, Fenced, JournalUnavailable
from domain.submission import OutcomeKind, Submission
from domain.timespan import MICROSECONDS, Instant, Timespan
from schemas.image import image_of
from tests import builders as b
from tests.world import World


def test_one_poisonous_command_of_512_leaves_511_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(nodes=0)
    batch = [world.submission(b.register(f"t{n}")) for n in range(512)]
    really = decide

    def stumbling(t: Any, principal: Any, command: Any) -> Any:
        refusal = really(t, principal, command)
        if command == b.register("t137"):
            raise ZeroDivisionError
        return refusal

    monkeypatch.setattr(engine, "decide", stumbling)
    outcomes = world.sequencer.submit(batch)
    kinds = [outcome.kind for outcome in outcomes]
    assert kinds.count(OutcomeKind.ACCEPTED) == 511
    assert kinds[137] is OutcomeKind.QUARANTINED
    assert "t137" not in world.sequencer.ledger.tenants
    assert world.types().count("CommandQuarantined") == 1
    monkeypatch.setattr(engine, "decide", really)
    again = world.sequencer.submit([batch[137]])[0]
    assert (again.kind, again.is_repeat) == (OutcomeKind.QUARANTINED, True)
    world.check()


def test_a_command_that_the_exclusion_constraint_refuses_is_set_apart_alone() -> None:
    world = World(nodes=1)
    world.accept(b.book("a", nodes=1))
    node = world.sequencer.ledger.nodes[NodeId("n1")]
    span = Timespan(b.at(1), b.at(2))
    world.sequencer.placer.release(node.index, node.piece, span, TenantId("a"))
    kept = dict(node.lanes.by_run)
    node.lanes.by_run.clear()
    batch = [world.submission(command) for command in (b.book("b", nodes=1), b.register("c"))]
    poisoned, sound = world.sequencer.submit(batch)
    assert poisoned.kind is OutcomeKind.QUARANTINED
    assert sound.kind is OutcomeKind.ACCEPTED
    node.lanes.by_run.update(kept)
    world.check()


def test_an_unknown_commit_is_resolved_by_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(nodes=1)
    really = MemoryJournal.append

    def arrives(journal: MemoryJournal, batch: Any) -> None:
        really(journal, batch)
        raise CommitUnknown("the wire broke after COMMIT")

    def vanishes(journal: MemoryJournal, batch: Any) -> None:
        raise CommitUnknown("the wire broke before COMMIT")

    monkeypatch.setattr(MemoryJournal, "append", arrives)
    world.accept(b.book("a"))
    monkeypatch.setattr(MemoryJournal, "append", vanishes)
    before = image_of(world.sequencer.ledger)
    assert world.send(b.book("b"), key="once").kind is OutcomeKind.UNAVAILABLE
    assert image_of(world.sequencer.ledger) == before
    monkeypatch.setattr(MemoryJournal, "append", really)
    assert world.send(b.book("b", start=5, end=6), key="again").kind is OutcomeKind.ACCEPTED
    world.check()


def test_a_journal_that_is_away_takes_everything_back(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(nodes=1)
    held = world.booked(b.book("a", start=0, end=1, hold_seconds=5))

    def away(journal: MemoryJournal, batch: Any) -> None:
        raise JournalUnavailable("away")

    before = image_of(world.sequencer.ledger)
    with monkeypatch.context() as patch:
        patch.setattr(MemoryJournal, "append", away)
        outcome = world.send(b.book("b"), at=b.at(seconds=10))
        assert outcome.kind is OutcomeKind.UNAVAILABLE
        assert image_of(world.sequencer.ledger) == before
    world.advance(b.at(seconds=10))
    assert world.reservation(held).state.value == "lapsed"
    world.check()


def test_a_key_with_a_control_character_is_no_key() -> None:
    world = World(nodes=1)
    sent = world.submission(b.register("c"))
    wrong = Submission(sent.principal, "a\0b", sent.type, sent.body, sent.at)
    rejected, accepted = world.sequencer.submit([wrong, sent])
    assert rejected.kind is OutcomeKind.REJECTED
    assert accepted.kind is OutcomeKind.ACCEPTED


def test_bytes_that_are_no_command_claim_nothing() -> None:
    world = World(nodes=1)
    before = world.seq
    sent = world.submission(b.register("c"))
    for kind, body in (
        ("RegisterTenant.v1", b"\x02"),
        ("Nonsense.v1", b""),
        (sent.type, sent.body + b"x"),
    ):
        broken = Submission(sent.principal, "key", kind, body, sent.at)
        outcome = world.sequencer.submit([broken])[0]
        assert outcome.kind is OutcomeKind.REJECTED
    assert world.seq == before


def test_a_dry_run_tells_and_leaves_nothing() -> None:
    world = World(nodes=1)
    before, seq = image_of(world.sequencer.ledger), world.seq
    sent = world.submission(b.book("a"))
    dry = Submission(sent.principal, sent.key, sent.type, sent.body, sent.at, dry_run=True)
    outcome = world.sequencer.submit([dry])[0]
    assert outcome.facts[0].type == "ReservationConfirmed.v1"
    assert (image_of(world.sequencer.ledger), world.seq) == (before, seq)
    assert world.sequencer.submit([sent])[0].kind is OutcomeKind.ACCEPTED


def test_a_clock_that_jumps_ahead_is_not_believed_until_confirmed() -> None:
    wall, monotonic = [1_000 * MICROSECONDS], [0]
    guard = ClockGuard(lambda: wall[0], lambda: monotonic[0])
    wall[0] += 30 * MICROSECONDS
    assert guard.now() == Instant(wall[0])
    assert guard.ahead_microseconds == 0
    wall[0] += 90 * MICROSECONDS
    guard.now()
    assert guard.ahead_microseconds > 60 * MICROSECONDS
    guard.confirm()
    guard.now()
    assert guard.ahead_microseconds == 0


def test_recorded_time_goes_on_when_the_clock_goes_back() -> None:
    world = World(nodes=1)
    world.accept(b.register("c"), at=b.at(2))
    world.now = b.at(1)
    world.accept(b.register("d"))
    times = [event.recorded_at for event in world.store.events]
    assert times == sorted(set(times))


def test_a_second_writer_fences_the_first() -> None:
    world = World(nodes=1)
    former = world.sequencer
    world.restart()
    world.accept(b.register("c"))
    with pytest.raises(Fenced):
        former.submit([world.submission(b.register("d"))])

"""The sequencer: decides serially in memory, commits in groups, and answers once it is durable.

State changes as facts are decided, each leaving its inverse behind. A commit that fails takes
the batch back; an ambiguous one is resolved by reading. One poisonous command never takes
another one with it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import structlog

from connectors.sequencer.appending import append
from connectors.sequencer.batching import Growing, net_cells, told
from connectors.sequencer.intake import (
    Intake,
    Ready,
    outcome_of,
    rejected,
    told_outcome,
    unavailable,
)
from connectors.sequencer.sealing import (
    DIGEST_BYTES,
    Cause,
    Sealer,
    cause_of,
    command_digest,
)
from domain.decide import decide
from domain.decide.firing import fire
from domain.decide.transcript import Transcript, take_back
from domain.facts.request import CommandQuarantined
from domain.facts.shard import ClockClamped
from domain.ids import CommandId, command_id
from domain.journal import (
    Batch,
    CellsOverlap,
    Claim,
    Head,
    Journal,
    JournalUnavailable,
    Snapshot,
    StoredEvent,
    Tile,
)
from domain.ledger import Ledger
from domain.merkle import Tree
from domain.ports import Placer
from domain.refusals import Reason, refuse
from domain.submission import TICK, UNREADABLE, Outcome, OutcomeKind, Submission
from domain.timers import Timer
from domain.timespan import Instant
from schemas.image import IMAGE_FORMAT, hash_of, image_of, pack
from schemas.registry import Registry

BATCH_COMMANDS_MAX = 512
TIMERS_PER_BATCH_MAX = 4096
CLAMP_TOLD_MICROSECONDS = 1_000_000
"""A clock that goes back by less is clamped in silence; by more, a fact tells of it."""

_log = structlog.get_logger("sequencer")


class Sequencer:
    """The one writer of a shard, over a journal whose lease it holds."""

    def __init__(
        self,
        journal: Journal,
        ledger: Ledger,
        placer: Placer,
        registry: Registry,
        head: Head,
        secret: bytes,
        clock: Callable[[], Instant] | None,
    ) -> None:
        """Go on from a head. Without a clock, time is what the commands say: a virtual one."""
        self.journal = journal
        self.ledger = ledger
        self.placer = placer
        self.head = head
        self.tree = Tree.from_bytes(head.tree)
        self._registry = registry
        self._sealer = Sealer(registry, head.shard)
        self._intake = Intake(registry, secret, is_virtual=clock is None)
        self._clock = clock
        ledger.changes.clear()
        ledger.undo.forget()

    @property
    def is_virtual(self) -> bool:
        """Whether commands carry the time."""
        return self._clock is None

    def next_due(self) -> Instant | None:
        """When something falls due by itself."""
        return self.ledger.timers.next_due()

    def submit(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """Durable outcomes of commands, in their order.

        Raises `Fenced` when another writer took the shard: nothing more may be done here.
        """
        outcomes: list[Outcome] = []
        for first in range(0, len(submissions), BATCH_COMMANDS_MAX):
            part = [self._intake.read(s) for s in submissions[first : first + BATCH_COMMANDS_MAX]]
            outcomes += self._batch(part)
        return outcomes

    def run_timers(self, now: Instant | None = None) -> int:
        """Let everything that is due happen, a batch at a time; how many facts it came to."""
        due_at = self._now(now)
        facts = 0
        while (due := self.next_due()) is not None and due <= due_at:
            growing = self._grow()
            self._fire(growing, due_at, TIMERS_PER_BATCH_MAX)
            if not self._commit(growing):
                break
            facts += len(growing.events)
        return facts

    def _now(self, at: Instant | None) -> Instant:
        if self._clock is not None:
            return self._clock()
        return self.head.recorded_at if at is None else at

    def _grow(self) -> Growing:
        return Growing(self.head.seq, self.head.recorded_at)

    def _batch(self, part: list[Ready | Outcome]) -> list[Outcome]:
        """Decide and commit a batch; after a poisonous commit, one by one."""
        try:
            known = self._known_claims(part)
        except JournalUnavailable as error:
            return [r if isinstance(r, Outcome) else unavailable(str(error)) for r in part]
        growing = self._grow()
        for ready in part:
            growing.outcomes.append(self._one(growing, ready, known))
        last = next((r for r in reversed(part) if isinstance(r, Ready)), None)
        if last is not None:
            self._fire(growing, self._now(last.submission.at))
        try:
            if self._commit(growing):
                return [outcome for outcome in growing.outcomes if outcome is not None]
        except CellsOverlap as error:
            return self._one_by_one(part, error)
        reason = "the journal cannot be reached; nothing was written"
        return [r if isinstance(r, Outcome) else unavailable(reason) for r in part]

    def _one_by_one(self, part: list[Ready | Outcome], error: CellsOverlap) -> list[Outcome]:
        """Find the culprit of a refused commit: it is set apart, the others go on."""
        if len(part) > 1:
            _log.error("batch_refused", error=str(error), commands=len(part))
            return [outcome for ready in part for outcome in self._batch([ready])]
        (ready,) = part
        assert isinstance(ready, Ready), "only a command can be refused by the journal"
        growing = self._grow()
        outcome = self._quarantine(growing, ready, error)
        growing.outcomes.append(outcome)
        return [outcome if self._commit(growing) else unavailable("the journal is away")]

    def _known_claims(self, part: Iterable[Ready | Outcome]) -> dict[tuple[str, str], Claim]:
        keys = [r.claim_key for r in part if isinstance(r, Ready) and r.takes_claim]
        return dict(self.journal.claims(keys)) if keys else {}

    def _one(
        self,
        growing: Growing,
        ready: Ready | Outcome,
        known: dict[tuple[str, str], Claim],
    ) -> Outcome:
        """What one command comes to, after everything that was due before it."""
        if isinstance(ready, Outcome):
            return ready
        now = self._now(ready.submission.at)
        self._fire(growing, now)
        if ready.submission.type == TICK:
            return Outcome(OutcomeKind.NO_EFFECT)
        claim = known.get(ready.claim_key) or growing.claims.get(ready.claim_key)
        if claim is not None and ready.takes_claim:
            self._note_ingress(growing, ready)
            return self._repeat(growing, ready, claim)
        if ready.submission.type == UNREADABLE:
            digest, why = ready.submission.body[:DIGEST_BYTES], ready.submission.body[DIGEST_BYTES:]
            return self._set_apart(growing, ready, UNREADABLE, digest, why.decode())
        return self._decide(growing, ready, now)

    def _repeat(self, growing: Growing, ready: Ready, claim: Claim) -> Outcome:
        """A key that was used before: the outcome that it had, or a conflict."""
        if claim.fingerprint != ready.fingerprint:
            return rejected(
                refuse(
                    Reason.KEY_REUSED,
                    key=ready.submission.key,
                    first_fingerprint=claim.fingerprint.hex(),
                    this_fingerprint=ready.fingerprint.hex(),
                )
            )
        if claim.seq_from > self.head.seq:
            facts = growing.facts_between(claim.seq_from, claim.seq_to)
        else:
            count = claim.seq_to - claim.seq_from + 1
            facts = told(list(self.journal.read(claim.seq_from - 1, count)))
        outcome = outcome_of(self._registry, facts, ready.command_id)
        return replace(outcome, is_repeat=True)

    def _decide(self, growing: Growing, ready: Ready, now: Instant) -> Outcome:
        """Let the domain decide; whatever goes wrong there stays with this one command."""
        at = Instant(max(growing.recorded_at + 1, now))
        t = Transcript(self.ledger, self.placer, at, CommandId(ready.command_id))
        mark = t.mark()
        cause = cause_of(ready.submission, bytes.fromhex(ready.command_id), ready.fingerprint)
        assert ready.command is not None
        try:
            refusal = decide(t, ready.submission.principal, ready.command)
            events = self._sealer.seal(t.written, cause, growing.seq, at)
        except Exception as error:  # noqa: BLE001 - a poisonous command is set apart, loudly
            t.back_to(mark)
            return self._quarantine(growing, ready, error)
        if ready.submission.dry_run:
            t.back_to(mark)
            return told_outcome(ready, refusal, told(events), 0)
        growing.add(events)
        self._note_ingress(growing, ready)
        if not events:
            return Outcome(OutcomeKind.NO_EFFECT, ready.command_id)
        if ready.takes_claim:
            self._claim(growing, ready, events[0].seq)
        return told_outcome(ready, refusal, told(events), events[0].seq)

    @staticmethod
    def _note_ingress(growing: Growing, ready: Ready) -> None:
        if ready.submission.ingress is not None:
            growing.ingress.append(ready.submission.ingress)

    @staticmethod
    def _claim(growing: Growing, ready: Ready, seq_from: int) -> None:
        scope, key = ready.claim_key
        growing.claims[ready.claim_key] = Claim(
            scope,
            key,
            bytes.fromhex(ready.command_id),
            ready.fingerprint,
            seq_from,
            growing.seq,
        )

    def _quarantine(self, growing: Growing, ready: Ready, error: Exception) -> Outcome:
        """Set a poisonous command apart: a fact with its digest, an alarm, no bytes of it."""
        _log.error(
            "command_quarantined",
            command=type(ready.command).__name__,
            command_id=ready.command_id,
            exc_info=error,
        )
        outcome = self._set_apart(
            growing,
            ready,
            type(ready.command).__name__,
            command_digest(ready.submission),
            type(error).__name__,
        )
        problem = f"the command made the ledger stumble ({type(error).__name__})"
        return replace(outcome, problem=problem)

    def _set_apart(
        self, growing: Growing, ready: Ready, command: str, digest: bytes, why: str
    ) -> Outcome:
        """Record that something was not decided, and let its key be answered for ever."""
        at = Instant(max(growing.recorded_at + 1, self._now(ready.submission.at)))
        t = Transcript(self.ledger, self.placer, at, CommandId(ready.command_id))
        t.write(CommandQuarantined(CommandId(ready.command_id), command, digest, why, growing.seq))
        cause = cause_of(ready.submission, bytes.fromhex(ready.command_id), ready.fingerprint)
        events = self._sealer.seal(t.written, cause, growing.seq, at)
        growing.add(events)
        self._note_ingress(growing, ready)
        if ready.takes_claim:
            self._claim(growing, ready, events[0].seq)
        seq = events[0].seq
        return Outcome(
            OutcomeKind.QUARANTINED, ready.command_id, seq, seq, told(events), problem=why
        )

    def _fire(self, growing: Growing, now: Instant, most: int | None = None) -> None:
        """Write everything that is due at an instant, in its order; of timers alone, a batch."""
        while most is None or len(growing.fired) < most:
            timer = self.ledger.timers.pop(now)
            if timer is None:
                return
            growing.fired.append(timer)
            at = Instant(max(growing.recorded_at + 1, timer[0] if self.is_virtual else now))
            t = Transcript(self.ledger, self.placer, at, CommandId(""))
            mark = t.mark()
            try:
                fire(t, timer)
                events = self._sealer.seal(t.written, Cause("timer"), growing.seq, at)
            except Exception as error:  # noqa: BLE001 - a poisonous timer is set apart, loudly
                t.back_to(mark)
                events = self._set_timer_apart(t, timer, growing.seq, at, error)
            growing.add(events)

    def _set_timer_apart(
        self, t: Transcript, timer: Timer, seq: int, at: Instant, error: Exception
    ) -> list[StoredEvent]:
        """A timer that makes the ledger stumble is recorded and dropped; the rest goes on."""
        _log.error("timer_quarantined", kind=timer[1].name, subject=timer[2], exc_info=error)
        words = f"{timer[0]}/{timer[1].name}/{timer[2]}"
        fact = CommandQuarantined(
            command_id("timer", words),
            f"Timer.{timer[1].name}",
            sha256(words.encode()).digest(),
            type(error).__name__,
            seq,
        )
        t.write(fact)
        return self._sealer.seal(t.written, Cause("timer"), seq, at)

    def note_clock(self, back_microseconds: int) -> None:
        """Record that the machine's clock went back; recorded time goes on all the same."""
        if back_microseconds < CLAMP_TOLD_MICROSECONDS:
            return
        fact = ClockClamped(self.head.shard, back_microseconds)
        self.record(fact, "clock")

    def record(self, fact: Any, cause: str) -> None:  # noqa: ANN401 - any fact of the shard
        """Write a fact of the ledger's own, in a commit of its own."""
        growing = self._grow()
        at = Instant(max(growing.recorded_at + 1, self._now(None)))
        t = Transcript(self.ledger, self.placer, at, CommandId(""))
        t.write(fact)
        growing.add(self._sealer.seal(t.written, Cause(cause), growing.seq, at))
        self._commit(growing)

    def keep_state(self) -> None:
        """Keep the state that is in memory as a snapshot, for a quick start and for comparison."""
        image = image_of(self.ledger)
        snapshot = Snapshot(self.head.seq, pack(image), hash_of(image))
        try:
            self.journal.save_snapshot(snapshot, IMAGE_FORMAT)
        except JournalUnavailable as error:
            _log.warning("snapshot_not_kept", error=str(error))

    def _commit(self, growing: Growing) -> bool:
        """Make a batch durable. False when nothing of it was written, and all is taken back."""
        if not growing.events and not growing.ingress:
            self._settle()
            return True
        tree, tiles = self.tree.grown([event.leaf for event in growing.events])
        head = replace(
            self.head, seq=growing.seq, recorded_at=growing.recorded_at, tree=tree.to_bytes()
        )
        removed, added = net_cells(self.ledger.changes)
        batch = Batch(
            self.head,
            head,
            growing.events,
            list(growing.claims.values()),
            removed,
            added,
            [Tile(tile.level, tile.index, tile.hashes) for tile in tiles],
            growing.ingress,
        )
        try:
            append(self.journal, batch)
        except JournalUnavailable as error:
            _log.warning("journal_unavailable", error=str(error))
            self._take_back(growing)
            return False
        except CellsOverlap:
            self._take_back(growing)
            raise
        self.head, self.tree = head, tree
        self._settle()
        return True

    def _settle(self) -> None:
        self.ledger.changes.clear()
        self.ledger.undo.forget()
        self.placer.advance(self.head.recorded_at)

    def _take_back(self, growing: Growing) -> None:
        take_back(self.placer, self.ledger, 0, 0)
        for due, kind, subject in growing.fired:
            self.ledger.timers.set(due, kind, subject)

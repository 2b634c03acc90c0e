"""From submissions to commands that may be decided, and from what they came to, to outcomes."""

from dataclasses import dataclass
from typing import Any

from connectors.sequencer.sealing import fingerprint_of
from domain.commands import REPORTS, Command, ConfirmClock
from domain.ids import command_id
from domain.refusals import Reason, Refusal, refuse
from domain.submission import TICK, UNREADABLE, Outcome, OutcomeKind, RefusalTold, Submission
from schemas.codec import Malformed
from schemas.legible import is_legible
from schemas.registry import Registry, UnknownSchema

KEY_CHARACTERS_MAX = 255


@dataclass(frozen=True, slots=True)
class Ready:
    """A submission that may be decided: its command and what identifies it."""

    submission: Submission
    command: Command | None
    """None for a tick, and for what is no command."""
    command_id: str
    fingerprint: bytes
    takes_claim: bool

    @property
    def claim_key(self) -> tuple[str, str]:
        """Where its key lives."""
        return self.submission.principal.scope, self.submission.key


class Intake:
    """Reads submissions; what is malformed claims nothing and writes nothing."""

    def __init__(self, registry: Registry, secret: bytes, *, is_virtual: bool) -> None:
        """Fingerprints are made with a secret; a virtual clock needs an instant in each."""
        self._registry = registry
        self._secret = secret
        self._is_virtual = is_virtual

    def read(self, submission: Submission) -> Ready | Outcome:
        """A submission's command, or why it cannot even be looked at."""
        key = submission.key
        if not 0 < len(key) <= KEY_CHARACTERS_MAX or not key.isprintable():
            problem = f"an idempotency key has 1 to {KEY_CHARACTERS_MAX} printable characters"
            return rejected(refuse(Reason.MALFORMED, field="key", problem=problem))
        if self._is_virtual and submission.at is None:
            problem = "under a virtual clock every command says when it is"
            return rejected(refuse(Reason.MALFORMED, field="at", problem=problem))
        if submission.type == TICK:
            return Ready(submission, None, "", b"", takes_claim=False)
        if submission.type == UNREADABLE:
            identity = command_id(submission.principal.scope, submission.key)
            fingerprint = fingerprint_of(self._secret, submission)
            return Ready(submission, None, identity, fingerprint, takes_claim=True)
        try:
            command = self._registry.decode(submission.type, submission.body)
        except UnknownSchema:
            problem = f"no contract is named {submission.type}"
            return rejected(refuse(Reason.MALFORMED, field="type", problem=problem))
        except Malformed as error:
            return rejected(refuse(Reason.MALFORMED, field="body", problem=error))
        if not is_legible(command):
            problem = "texts are made of printable characters"
            return rejected(refuse(Reason.MALFORMED, field="body", problem=problem))
        identity = command_id(submission.principal.scope, submission.key)
        fingerprint = fingerprint_of(self._secret, submission)
        claims = not isinstance(command, REPORTS) and not submission.dry_run
        return Ready(submission, command, identity, fingerprint, claims)


def confirms_clock(submission: Submission) -> bool:
    """Whether a command is the one that is taken while the clock is not believed."""
    return submission.type.split(".")[0] == ConfirmClock.__name__


def outcome_of(registry: Registry, facts: tuple[Any, ...], identity: str) -> Outcome:
    """The outcome that stored facts of a command stand for."""
    refusal = None
    kind = OutcomeKind.ACCEPTED
    last = facts[-1]
    match last.type.split(".")[0]:
        case "CommandRefused":
            kind = OutcomeKind.REFUSED
            fact = registry.decode(last.type, last.body)
            reason = Reason[fact.reason.upper().replace("-", "_")]
            refusal = RefusalTold(reason, fact.evidence, fact.offers)
        case "CommandHadNoEffect":
            kind = OutcomeKind.NO_EFFECT
        case "CommandQuarantined":
            kind = OutcomeKind.QUARANTINED
    return Outcome(kind, identity, facts[0].seq, last.seq, facts, refusal)


def told_outcome(
    ready: Ready, refusal: Refusal | None, facts: tuple[Any, ...], seq_from: int
) -> Outcome:
    """What a decided command is answered."""
    if refusal is not None:
        told_refusal = RefusalTold(refusal.reason, refusal.facts, refusal.offers)
        kind = OutcomeKind.REFUSED
    else:
        told_refusal = None
        effect = facts and not facts[-1].type.startswith("CommandHadNoEffect")
        kind = OutcomeKind.ACCEPTED if effect else OutcomeKind.NO_EFFECT
    seq_to = seq_from + len(facts) - 1 if seq_from else 0
    return Outcome(kind, ready.command_id, seq_from, seq_to, facts, told_refusal)


def rejected(refusal: Refusal) -> Outcome:
    """Turned away before it was decided: no claim, no fact."""
    told_refusal = RefusalTold(refusal.reason, refusal.facts, refusal.offers)
    return Outcome(OutcomeKind.REJECTED, refusal=told_refusal)


def unavailable(problem: str) -> Outcome:
    """Nothing was decided; the same key may be sent again."""
    return Outcome(OutcomeKind.UNAVAILABLE, problem=problem)

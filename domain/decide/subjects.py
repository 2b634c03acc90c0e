"""Deciding on subjects of personal data."""

from domain.commands.subject import EraseSubject
from domain.decide import checks
from domain.decide.transcript import Transcript
from domain.facts.shard import SubjectErased
from domain.refusals import Refusal


def erase_subject(t: Transcript, command: EraseSubject) -> Refusal | None:
    """A subject is to be forgotten; asked again, it is forgotten again."""
    refusal = checks.name("subject_id", command.subject_id) or checks.name("reason", command.reason)
    if refusal:
        return refusal
    t.write(SubjectErased(t.ledger.shard, command.subject_id, command.reason))
    return None

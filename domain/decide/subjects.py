"""Deciding on principals: what is forgotten of them, and where they were turned away."""

from domain.commands.report import ReportDenial
from domain.commands.subject import EraseSubject
from domain.decide import checks
from domain.decide.transcript import Transcript
from domain.facts.shard import AccessDenied, SubjectErased
from domain.refusals import Refusal


def erase_subject(t: Transcript, command: EraseSubject) -> Refusal | None:
    """A subject is to be forgotten; asked again, it is forgotten again."""
    refusal = checks.name("subject_id", command.subject_id) or checks.name("reason", command.reason)
    if refusal:
        return refusal
    t.write(SubjectErased(t.ledger.shard, command.subject_id, command.reason))
    return None


def report_denial(t: Transcript, command: ReportDenial) -> Refusal | None:
    """A read of what is not the reader's own is noted, as a command would be."""
    for field in ("principal_id", "verb", "reservation_id"):
        refusal = checks.name(field, getattr(command, field))
        if refusal:
            return refusal
    t.write(
        AccessDenied(
            t.ledger.shard,
            command.principal_id,
            command.tenant_id,
            command.verb,
            f"reservation/{command.reservation_id}",
        )
    )
    return None

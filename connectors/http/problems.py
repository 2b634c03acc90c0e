"""Refusals as RFC 9457 problems: one status for each reason, its facts by the reader's role."""

from typing import Any

from fastapi.responses import JSONResponse

from domain.principal import Principal, Role
from domain.refusals import RULES, Reason
from domain.submission import Outcome, OutcomeKind, RefusalTold
from schemas.json_form import BadField, instant_text

STATUS: dict[Reason, int] = {
    Reason.MALFORMED: 400,
    Reason.NOT_FOUND: 404,
    Reason.FORBIDDEN: 403,
    Reason.KEY_REUSED: 409,
    Reason.FROZEN: 423,
    Reason.STALE_VERSION: 412,
    Reason.STALE_REPORT: 422,
    Reason.FUTURE_REPORT: 422,
    Reason.WRONG_STATE: 409,
    Reason.WINDOW_INVALID: 422,
    Reason.SIZE_INVALID: 422,
    Reason.SHAPE_IMPOSSIBLE: 422,
    Reason.NOT_ENFORCEABLE: 422,
    Reason.TAG_MISSING: 422,
    Reason.QUOTA: 409,
    Reason.BUDGET: 409,
    Reason.SPEND_CAP: 409,
    Reason.CAPACITY: 409,
    Reason.TOPOLOGY: 409,
    Reason.ISOLATION: 409,
    Reason.MAINTENANCE: 409,
    Reason.DISRUPTION_CAP: 409,
    Reason.NOT_FOUND_IN_TIME: 409,
    Reason.LIMIT: 422,
}
assert STATUS.keys() == set(Reason)

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = "1"
_INSTANT_FACTS = frozenset({"at", "start", "end", "occurred_at", "oldest", "latest"})
_OPERATOR_FACTS = frozenset({"free_milli", "holders"})
"""Facts that tell of others' use: for those who run the fleet."""


def problem(
    status: int,
    kind: str,
    detail: str,
    headers: dict[str, str] | None = None,
    **more: Any,  # noqa: ANN401 - JSON
) -> JSONResponse:
    """A problem of some type."""
    content = {
        "type": f"urn:gpuledger:problem:{kind}",
        "title": kind.replace("-", " "),
        "status": status,
        "detail": detail,
        **more,
    }
    return JSONResponse(content, status, headers, media_type=MEDIA_TYPE)


def bad_field(error: BadField) -> JSONResponse:
    """A body that is not what it must be, with the place."""
    return problem(400, "malformed", str(error), pointer=error.pointer, field=error.pointer)


def facts_for(refusal: RefusalTold, reader: Principal) -> dict[str, str]:
    """The facts of a refusal that a reader may see, instants as text."""
    hidden = _OPERATOR_FACTS if reader.role is Role.TENANT else frozenset()
    facts = {name: value for name, value in refusal.facts.items() if name not in hidden}
    tenant = facts.get("tenant_id")
    if reader.role is Role.TENANT and tenant not in {None, reader.tenant_id}:
        facts["tenant_id"] = "an ancestor"
    return {
        name: instant_text(int(value)) if name in _INSTANT_FACTS and value.isdigit() else value
        for name, value in facts.items()
    }


def refused(refusal: RefusalTold, reader: Principal, command_id: str) -> dict[str, Any]:
    """A refusal as the members of a problem."""
    reason = refusal.reason
    facts = facts_for(refusal, reader)
    more: dict[str, Any] = {
        "reason": reason.code,
        "retry": RULES[reason].retry.value,
        "facts": facts,
        "offers": [
            {"start": instant_text(offer.start), "end": instant_text(offer.end)}
            for offer in refusal.offers
        ],
        "command_id": command_id,
    }
    if "field" in facts:
        more["pointer"] = "/" + facts["field"]
    return more


def told(facts: dict[str, str]) -> str:
    """The facts of a refusal in a line."""
    return ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in facts.items())


def of_outcome(outcome: Outcome, reader: Principal) -> JSONResponse | None:
    """The problem that an outcome stands for; None when it is none."""
    if outcome.refusal is not None:
        more = refused(outcome.refusal, reader, outcome.command_id)
        reason = outcome.refusal.reason
        return problem(STATUS[reason], reason.code, told(more["facts"]), **more)
    if outcome.kind is OutcomeKind.UNAVAILABLE:
        return problem(503, "unavailable", outcome.problem, {"Retry-After": RETRY_SECONDS})
    if outcome.kind is OutcomeKind.QUARANTINED:
        return problem(500, "quarantined", outcome.problem, command_id=outcome.command_id)
    return None

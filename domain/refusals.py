"""Why the ledger says no: one enum, ordered by precedence, each with what it must carry."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from domain.ids import PoolId, TenantId
from domain.sizes import ReservationClass, Shape, Size
from domain.timespan import Instant


class Reason(IntEnum):
    """The reasons in the order in which the first that applies wins; numbers are never reused."""

    MALFORMED = 10
    NOT_FOUND = 20
    FORBIDDEN = 30
    KEY_REUSED = 40
    FROZEN = 50
    STALE_VERSION = 60
    STALE_REPORT = 62
    FUTURE_REPORT = 64
    WRONG_STATE = 70
    WINDOW_INVALID = 80
    SIZE_INVALID = 90
    SHAPE_IMPOSSIBLE = 100
    NOT_ENFORCEABLE = 110
    TAG_MISSING = 120
    QUOTA = 130
    BUDGET = 140
    SPEND_CAP = 150
    CAPACITY = 160
    TOPOLOGY = 170
    ISOLATION = 180
    MAINTENANCE = 190
    DISRUPTION_CAP = 200
    NOT_FOUND_IN_TIME = 210
    LIMIT = 220

    @property
    def code(self) -> str:
        """The name in answers, facts and documents: lower case, hyphenated."""
        return self.name.lower().replace("_", "-")


class Retry(StrEnum):
    """Whether asking again can help."""

    NEVER = "never"
    CHANGED = "changed"
    LATER_WITH_A_NEW_KEY = "later-with-a-new-key"
    AFTER_SOMEONE_ACTS = "after-someone-acts"


@dataclass(frozen=True, slots=True)
class Rule:
    """What one reason promises to its reader."""

    retry: Retry
    must_carry: frozenset[str]


def _rule(retry: Retry, *must_carry: str) -> Rule:
    return Rule(retry, frozenset(must_carry))


RULES: Mapping[Reason, Rule] = {
    Reason.MALFORMED: _rule(Retry.CHANGED, "field", "problem"),
    Reason.NOT_FOUND: _rule(Retry.CHANGED, "kind", "id"),
    Reason.FORBIDDEN: _rule(Retry.AFTER_SOMEONE_ACTS, "verb", "role"),
    Reason.KEY_REUSED: _rule(Retry.CHANGED, "key", "first_fingerprint", "this_fingerprint"),
    Reason.FROZEN: _rule(Retry.AFTER_SOMEONE_ACTS, "pool_id", "act"),
    Reason.STALE_VERSION: _rule(Retry.CHANGED, "expected", "actual"),
    Reason.STALE_REPORT: _rule(Retry.NEVER, "occurred_at", "oldest"),
    Reason.FUTURE_REPORT: _rule(Retry.CHANGED, "occurred_at", "latest"),
    Reason.WRONG_STATE: _rule(Retry.CHANGED, "kind", "id", "state", "verb"),
    Reason.WINDOW_INVALID: _rule(Retry.CHANGED, "problem"),
    Reason.SIZE_INVALID: _rule(Retry.CHANGED, "problem"),
    Reason.SHAPE_IMPOSSIBLE: _rule(Retry.CHANGED, "problem"),
    Reason.NOT_ENFORCEABLE: _rule(Retry.CHANGED, "grade", "problem"),
    Reason.TAG_MISSING: _rule(Retry.CHANGED, "tag"),
    Reason.QUOTA: _rule(
        Retry.AFTER_SOMEONE_ACTS, "tenant_id", "limit_milli", "left_milli", "asked_milli", "at"
    ),
    Reason.BUDGET: _rule(Retry.AFTER_SOMEONE_ACTS, "left", "asked"),
    Reason.SPEND_CAP: _rule(Retry.AFTER_SOMEONE_ACTS, "cap", "left", "asked"),
    Reason.CAPACITY: _rule(Retry.LATER_WITH_A_NEW_KEY, "asked_milli", "free_milli", "at"),
    Reason.TOPOLOGY: _rule(Retry.LATER_WITH_A_NEW_KEY, "level", "problem"),
    Reason.ISOLATION: _rule(Retry.LATER_WITH_A_NEW_KEY, "problem"),
    Reason.MAINTENANCE: _rule(Retry.LATER_WITH_A_NEW_KEY, "start", "end"),
    Reason.DISRUPTION_CAP: _rule(Retry.CHANGED, "cap", "needed"),
    Reason.NOT_FOUND_IN_TIME: _rule(Retry.LATER_WITH_A_NEW_KEY, "waited_seconds"),
    Reason.LIMIT: _rule(Retry.CHANGED, "limit", "max", "asked"),
}


@dataclass(frozen=True, slots=True)
class Offer:
    """A window that would fit what was asked, as things stand."""

    start: Instant
    end: Instant


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request for units came down to: kept with its no, so that it can be explained anew."""

    tenant_id: TenantId
    pool_id: PoolId
    klass: ReservationClass
    size: Size
    shape: Shape
    start: Instant
    end: Instant


@dataclass(frozen=True, slots=True)
class Refusal:
    """A no: the reason, its facts as text, and what would fit instead."""

    reason: Reason
    facts: Mapping[str, str] = field(default_factory=dict)
    offers: tuple[Offer, ...] = ()
    asked: Asked | None = None
    """Of a request for units that was well formed, what it asked for."""

    def __post_init__(self) -> None:
        """A refusal that keeps its evidence to itself is a fault of ours."""
        missing = RULES[self.reason].must_carry - self.facts.keys()
        assert not missing, f"{self.reason.code} must carry {sorted(missing)}"

    @property
    def retry(self) -> Retry:
        """Whether asking again can help."""
        return RULES[self.reason].retry


def refuse(reason: Reason, **facts: object) -> Refusal:
    """A refusal with its facts; instants and numbers are kept as their decimal digits."""
    return Refusal(reason, {name: str(value) for name, value in facts.items()})

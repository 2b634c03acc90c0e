"""When a report is believed: not from the future, not years old, not twice, not out of order."""

from domain.decide.transcript import Transcript
from domain.facts.hardware import ReportStamp
from domain.fleet_state import Node
from domain.policy import DAY_SECONDS
from domain.refusals import Reason, Refusal, refuse
from domain.timespan import Instant, seconds

REPORT_AGE_SECONDS_MAX = 366 * DAY_SECONDS
"""What occurred longer ago is refused: a clock is wrong, or somebody replays an old log."""

REPORT_AHEAD_SECONDS_MAX = 60
"""How far a reporter's clock may be ahead of ours."""

LOOK_SECONDS_MAX = 3_600
"""How far ahead of now an observation may reach: until its source looks again."""

HEARD_BEFORE = "heard-before"
OUT_OF_ORDER = "out-of-order"


def believable(t: Transcript, node: Node | None, start: Instant, end: Instant) -> Refusal | None:
    """A report of what occurred from `start` to `end` is neither too old nor from the future."""
    latest = t.now + seconds(REPORT_AHEAD_SECONDS_MAX)
    for at, until in ((start, latest), (end, latest + seconds(LOOK_SECONDS_MAX))):
        if at > until:
            return refuse(Reason.FUTURE_REPORT, occurred_at=at, latest=until)
    oldest = max(0, t.second - seconds(REPORT_AGE_SECONDS_MAX))
    if node is not None:
        oldest = max(oldest, node.joined_at - node.joined_at % seconds(1))
    if start < oldest:
        return refuse(Reason.STALE_REPORT, occurred_at=start, oldest=oldest)
    return None


def disbelief(t: Transcript, stamp: ReportStamp | None, nodes: list[Node], at: Instant) -> str:
    """Why a report changes nothing any more; empty when it is news."""
    if stamp is not None and t.ledger.is_stale(stamp):
        return HEARD_BEFORE
    if all(at < node.heard_at for node in nodes):
        return OUT_OF_ORDER
    return ""

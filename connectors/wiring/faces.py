"""What the faces offer, for the reference pages: routes, reads, statuses, limits."""

from connectors.http import feed, headroom, history, planning, proofs, queueing, reads
from connectors.http.commanding import BATCH_COMMANDS_MAX
from connectors.http.guard import BODY_BYTES_MAX
from connectors.http.problems import STATUS
from connectors.http.verbs import ROUTES
from connectors.http.virtual_time import ADVANCE, HEADER

READS = {
    **reads.READS,
    **planning.PLANS,
    **queueing.QUEUES,
    **proofs.PROOFS,
    **history.HISTORY,
    **headroom.HEADROOM,
    **feed.FEED,
}
TOLD = {
    **reads.TOLD,
    **planning.TOLD,
    **queueing.TOLD,
    **proofs.TOLD,
    **history.TOLD,
    **headroom.TOLD,
    **feed.TOLD,
}
"""What each read tells, in a line, by its verb."""

__all__ = [
    "ADVANCE",
    "BATCH_COMMANDS_MAX",
    "BODY_BYTES_MAX",
    "HEADER",
    "READS",
    "ROUTES",
    "STATUS",
    "TOLD",
]

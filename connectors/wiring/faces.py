"""What the faces offer, for the reference pages: routes, reads, statuses, limits."""

from connectors.http.commanding import BATCH_COMMANDS_MAX
from connectors.http.feed import FEED
from connectors.http.feed import told as feed_told
from connectors.http.guard import BODY_BYTES_MAX
from connectors.http.headroom import HEADROOM
from connectors.http.headroom import told as headroom_told
from connectors.http.history import HISTORY
from connectors.http.history import told as history_told
from connectors.http.planning import PLANS
from connectors.http.planning import told as plan_told
from connectors.http.problems import STATUS
from connectors.http.proofs import PROOFS
from connectors.http.proofs import told as proof_told
from connectors.http.reads import READS as _READS
from connectors.http.reads import told
from connectors.http.verbs import ROUTES
from connectors.http.virtual_time import ADVANCE, HEADER

READS = {**_READS, **PLANS, **PROOFS, **HISTORY, **HEADROOM, **FEED}

__all__ = [
    "ADVANCE",
    "BATCH_COMMANDS_MAX",
    "BODY_BYTES_MAX",
    "HEADER",
    "READS",
    "ROUTES",
    "STATUS",
    "reads_told",
]


def reads_told() -> dict[str, str]:
    """What each read tells, in a line."""
    plans = {verb: plan_told(verb) for verb in PLANS.values()}
    proofs = {verb: proof_told(verb) for verb in PROOFS.values()}
    left = {verb: headroom_told(verb) for verb in HEADROOM.values()}
    feed = {verb: feed_told(verb) for verb in FEED.values()}
    past = {verb: history_told(verb) for verb in HISTORY.values()}
    return {verb: told(verb) for verb in _READS.values()} | plans | proofs | past | left | feed

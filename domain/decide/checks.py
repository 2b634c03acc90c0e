"""Small checks that many commands share; each gives a refusal, or None when all is well."""

from collections.abc import Mapping

from domain.fleet_state import Node
from domain.ids import NAME_CHARACTERS_MAX, NodeId, PoolId, TenantId, is_name
from domain.ledger import Ledger
from domain.policy import Act
from domain.refusals import Reason, Refusal, refuse
from domain.sealed import BOX_BYTES_MAX, Sealed
from domain.timespan import FAR_FUTURE, MICROSECONDS, Timespan

TAGS_MAX = 32
TEXT_CHARACTERS_MAX = 256
MILLI_MAX = 10**12


def name(field: str, text: str) -> Refusal | None:
    """A name must be short and plain."""
    if is_name(text):
        return None
    problem = f"must be 1 to {NAME_CHARACTERS_MAX} letters, digits or any of - _ . :"
    return refuse(Reason.MALFORMED, field=field, problem=problem)


def code(field: str, text: str) -> Refusal | None:
    """A reason is a short code or nothing: free text would be personal data in the clear."""
    return name(field, text) if text else None


def note(field: str, sealed: Sealed | None) -> Refusal | None:
    """A note is somebody's, and short."""
    if sealed is None:
        return None
    if len(sealed.box) > BOX_BYTES_MAX:
        return refuse(Reason.LIMIT, limit="box_bytes_max", max=BOX_BYTES_MAX, asked=len(sealed.box))
    return name(f"{field}/subject_id", sealed.subject_id)


def text_map(field: str, texts: Mapping[str, str]) -> Refusal | None:
    """Tags and labels must be few and short."""
    if len(texts) > TAGS_MAX:
        return refuse(Reason.LIMIT, limit="tags_max", max=TAGS_MAX, asked=len(texts))
    for key, value in texts.items():
        if not is_name(key) or len(value) > TEXT_CHARACTERS_MAX:
            problem = f"names are plain, values at most {TEXT_CHARACTERS_MAX} characters"
            return refuse(Reason.MALFORMED, field=f"{field}/{key}", problem=problem)
    return None


def between(field: str, number: int, least: int, most: int) -> Refusal | None:
    """A number must lie in a range."""
    if least <= number <= most:
        return None
    return refuse(Reason.MALFORMED, field=field, problem=f"must be from {least} to {most}")


def known_pool(ledger: Ledger, pool_id: PoolId) -> Refusal | None:
    """The pool must exist and be open."""
    pool = ledger.pools.get(pool_id)
    if pool is None:
        return refuse(Reason.NOT_FOUND, kind="pool", id=pool_id)
    if not pool.is_open:
        return refuse(Reason.WRONG_STATE, kind="pool", id=pool_id, state="closed", verb="use")
    return None


def known_node(ledger: Ledger, node_id: NodeId) -> Refusal | None:
    """The node must exist."""
    if node_id in ledger.nodes:
        return None
    return refuse(Reason.NOT_FOUND, kind="node", id=node_id)


def known_tenant(ledger: Ledger, tenant_id: TenantId) -> Refusal | None:
    """The tenant must exist."""
    if tenant_id in ledger.tenants:
        return None
    return refuse(Reason.NOT_FOUND, kind="tenant", id=tenant_id)


def not_frozen(ledger: Ledger, pool_id: PoolId, act: Act) -> Refusal | None:
    """Nobody has pulled the brake on this kind of act."""
    if act.value in ledger.pools[pool_id].frozen:
        return refuse(Reason.FROZEN, pool_id=pool_id, act=act.value)
    return None


def whole_seconds(span: Timespan) -> Refusal | None:
    """A window has a first instant before its last, on whole seconds, in a year that we know."""
    if span.is_empty:
        return refuse(Reason.WINDOW_INVALID, problem="the window is empty: end is not after start")
    if span.start % MICROSECONDS or span.end % MICROSECONDS:
        return refuse(Reason.WINDOW_INVALID, problem="windows are whole seconds")
    if not 0 <= span.start < span.end <= FAR_FUTURE:
        return refuse(Reason.WINDOW_INVALID, problem="the window lies outside 1970 to 2112")
    return None


def version(expected: int | None, actual: int) -> Refusal | None:
    """What the caller saw is what there is."""
    if expected is None or expected == actual:
        return None
    return refuse(Reason.STALE_VERSION, expected=expected, actual=actual)


def wrong_state(node: Node, verb: str) -> Refusal:
    """A node whose state does not allow a verb."""
    return refuse(Reason.WRONG_STATE, kind="node", id=node.id, state=node.state.value, verb=verb)

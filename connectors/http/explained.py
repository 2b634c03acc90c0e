"""Explanations and suppositions as JSON, by the reader's role.

A tenant sees its own ids, that others are in the way, and when there is room; those who run the
fleet see who, where and how much.
"""

from typing import Any

from domain.principal import Principal, Role
from domain.units import MILLI_PER_GPU
from schemas.json_form import instant_text, render
from solvers.explaining import Explanation, Limit
from solvers.nearest import Nearest
from solvers.obstacles import Obstacle
from solvers.supposing import Difference, Stand, Supposed
from solvers.trial import Want

NODES_TOLD_MAX = 1_000
_OPERATOR_FACTS = frozenset({"free_milli", "nodes", "planned"})
"""Facts of limits that tell of others' use, or of the fleet."""
_INSTANT_FACTS = frozenset({"at", "end"})


def explained(found: Explanation, reader: Principal) -> dict[str, Any]:
    """An explanation, as far as a reader may see it."""
    own = reader.role is Role.TENANT
    mine = [o for o in found.in_the_way if not own or o.tenant_id == reader.tenant_id]
    content: dict[str, Any] = {
        "as_of_seq": found.seq,
        "want": _want(found.want),
        "fits": found.fits,
        "here": list(found.here),
        "limits": [_limit(limit, reader) for limit in found.limits],
        "in_the_way": [_obstacle(each) for each in mine],
        "others_in_the_way": len(mine) < len(found.in_the_way),
        "nearest": [_nearest(each) for each in found.nearest],
    }
    if not own:
        content |= {
            "again": list(found.again),
            "enough": found.is_enough,
            "verdicts": found.verdicts,
            "nodes": [
                {"node_id": s.node_id, "verdict": s.verdict, "free_gpus": s.free_gpus}
                for s in found.nodes[:NODES_TOLD_MAX]
            ],
        }
    return content


def _want(want: Want) -> dict[str, Any]:
    return {
        "tenant_id": want.tenant_id,
        "pool_id": want.pool.id,
        "class": want.klass.value,
        "size": render(want.size),
        "shape": render(want.shape),
        "start": instant_text(want.span.start),
        "end": instant_text(want.span.end),
    }


def _limit(limit: Limit, reader: Principal) -> dict[str, Any]:
    own = reader.role is Role.TENANT
    facts = {
        name: instant_text(int(value)) if name in _INSTANT_FACTS else value
        for name, value in limit.facts.items()
        if not (own and name in _OPERATOR_FACTS)
    }
    if own and facts.get("tenant_id") not in {None, reader.tenant_id}:
        facts["tenant_id"] = "an ancestor"
    return {"rule": limit.rule, "alone": limit.alone, "facts": facts}


def _obstacle(each: Obstacle) -> dict[str, Any]:
    return {
        "holder_id": each.holder_id,
        "tenant_id": each.tenant_id,
        "class": each.klass,
        "state": each.state,
        "node_id": each.node_id,
        "milli": each.milli,
        "start": instant_text(each.start),
        "end": instant_text(each.end),
    }


def _nearest(each: Nearest) -> dict[str, Any]:
    return {"change": each.change, **_want(each.want)}


def supposed(found: Supposed) -> dict[str, Any]:
    """What would come of a supposition; for those who run the fleet."""
    return {
        "as_of_seq": found.seq,
        "request": _request(found),
        "moves": [
            {
                "reservation_id": each.reservation_id,
                "from": list(each.before.nodes) if each.before else [],
                "to": list(each.after.nodes) if each.after else [],
                "gpus": each.moved_milli / MILLI_PER_GPU,
            }
            for each in found.moved
        ],
        "differences": [_difference(each) for each in found.differences],
        "over_quota": [
            {
                "tenant_id": over.tenant_id,
                "nominal_milli": over.nominal_milli,
                "booked_milli": over.booked_milli,
                "at": instant_text(over.at),
            }
            for over in found.over
        ],
        "plan": dict(found.plan),
        "facts": dict(found.facts),
    }


def _request(found: Supposed) -> dict[str, Any] | None:
    refusal = found.refusal
    if refusal is not None:
        return {
            "outcome": "refused",
            "reason": refusal.reason.code,
            "offers": [render(offer) for offer in refusal.offers],
        }
    if found.request_id is None:
        return None
    new = next(d for d in found.differences if d.reservation_id == found.request_id)
    stand = _stand(new.after)
    return {"outcome": stand["state"] if stand else "gone", **(stand or {})}


def _difference(each: Difference) -> dict[str, Any]:
    return {
        "reservation_id": each.reservation_id,
        "before": _stand(each.before),
        "after": _stand(each.after),
        "moved_milli": each.moved_milli,
    }


def _stand(stand: Stand | None) -> dict[str, Any] | None:
    if stand is None:
        return None
    return {
        "tenant_id": stand.tenant_id,
        "class": stand.klass,
        "state": stand.state,
        "nodes": list(stand.nodes),
        "short_milli": stand.short_milli,
        "start": instant_text(stand.start),
        "end": instant_text(stand.end),
    }

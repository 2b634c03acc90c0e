"""Deciding on pools: opening, ruling, braking, closing."""

from domain.commands.pool import ChangePolicy, ClosePool, Freeze, OpenPool, Thaw
from domain.decide import checks
from domain.decide.breaking import catch_up
from domain.decide.transcript import Transcript
from domain.environment import Orchestrator
from domain.facts.pool import PoolClosed, PoolFrozen, PoolOpened, PoolPolicyChanged, PoolThawed
from domain.ids import PoolId
from domain.policy import DAY_SECONDS, Act, PoolPolicy
from domain.refusals import Reason, Refusal, refuse

POOLS_MAX = 1_000
CHECKS_MAX = 32
YEARS_SECONDS_MAX = 10 * 366 * DAY_SECONDS


def open_pool(t: Transcript, command: OpenPool) -> Refusal | None:
    """A pool of that name begins, unless there is one already."""
    refusal = checks.name("pool_id", command.pool_id) or _policy(command.policy)
    if refusal:
        return refusal
    known = t.ledger.pools.get(command.pool_id)
    if known is not None:
        state = "open" if known.is_open else "closed"
        return refuse(Reason.WRONG_STATE, kind="pool", id=command.pool_id, state=state, verb="open")
    if len(t.ledger.pools) >= POOLS_MAX:
        return refuse(Reason.LIMIT, limit="pools_max", max=POOLS_MAX, asked=POOLS_MAX + 1)
    t.write(PoolOpened(command.pool_id, command.site, command.policy))
    return None


def change_policy(t: Transcript, command: ChangePolicy) -> Refusal | None:
    """Other rules hold for what comes after."""
    refusal = checks.known_pool(t.ledger, command.pool_id) or _policy(command.policy)
    if refusal:
        return refusal
    if t.ledger.pools[command.pool_id].policy != command.policy:
        t.write(PoolPolicyChanged(command.pool_id, command.policy))
    return None


def _policy(policy: PoolPolicy) -> Refusal | None:
    """Every number of a policy lies in a range that makes sense."""
    if len(policy.acceptance_checks) > CHECKS_MAX:
        asked = len(policy.acceptance_checks)
        return refuse(Reason.LIMIT, limit="checks_max", max=CHECKS_MAX, asked=asked)
    for at, check in enumerate(policy.acceptance_checks):
        refusal = checks.name(f"policy/acceptance_checks/{at}", check)
        if refusal:
            return refusal
    if policy.acceptance and not policy.acceptance_checks:
        problem = "name at least one check, or test nothing"
        return refuse(Reason.MALFORMED, field="policy/acceptance_checks", problem=problem)
    known = {each.value for each in Orchestrator}
    if not known.issuperset(policy.orchestrators):
        problem = f"must be of {', '.join(sorted(known))}"
        return refuse(Reason.MALFORMED, field="policy/orchestrators", problem=problem)
    ranges = {
        "time_step_seconds": (1, DAY_SECONDS),
        "horizon_seconds": (1, YEARS_SECONDS_MAX),
        "window_seconds_max": (1, YEARS_SECONDS_MAX),
        "hold_seconds_max": (1, YEARS_SECONDS_MAX),
        "term_seconds": (2, YEARS_SECONDS_MAX),
        "term_notice_seconds": (1, policy.term_seconds - 1),
        "term_retry_seconds": (1, YEARS_SECONDS_MAX),
        "gap_seconds": (0, DAY_SECONDS),
        "grace_seconds": (0, 30 * DAY_SECONDS),
        "ack_grace_seconds": (1, DAY_SECONDS),
        "suspicion_grace_seconds": (1, DAY_SECONDS),
        "reboot_grace_seconds": (1, DAY_SECONDS),
        "planned_reboot_grace_seconds": (1, DAY_SECONDS),
        "runtime_seconds_min": (0, 30 * DAY_SECONDS),
        "breaker_percent": (1, 100),
        "breaker_seconds": (1, DAY_SECONDS),
        "fairness_half_life_seconds": (0, 30 * DAY_SECONDS),
        "disruption_ratio_max": (0, 1_000_000),
    }
    for field, (least, most) in ranges.items():
        refusal = checks.between(f"policy/{field}", getattr(policy, field), least, most)
        if refusal:
            return refusal
    return None


def freeze(t: Transcript, command: Freeze) -> Refusal | None:
    """Some kinds of act stop, in one pool or in all."""
    pools = _braked(t, command)
    if isinstance(pools, Refusal):
        return pools
    for pool_id in pools:
        acts = tuple(sorted(set(command.acts) - t.ledger.pools[pool_id].frozen))
        if acts:
            t.write(PoolFrozen(pool_id, acts, command.reason, command.note))
    return None


def thaw(t: Transcript, command: Thaw) -> Refusal | None:
    """Some kinds of act go on, in one pool or in all."""
    pools = _braked(t, command)
    if isinstance(pools, Refusal):
        return pools
    for pool_id in pools:
        acts = tuple(sorted(set(command.acts) & t.ledger.pools[pool_id].frozen))
        if acts:
            t.write(PoolThawed(pool_id, acts, command.reason, command.note))
        if Act.REPAIR.value in acts:
            catch_up(t, t.ledger.pools[pool_id])
    return None


def _braked(t: Transcript, command: Freeze | Thaw) -> Refusal | tuple[PoolId, ...]:
    """The pools that are meant, once the acts and the reason are known to be good."""
    acts = {act.value for act in Act}
    for act in command.acts:
        if act not in acts:
            problem = f"must be of {', '.join(sorted(acts))}"
            return refuse(Reason.MALFORMED, field="acts", problem=problem)
    if not command.acts:
        return refuse(Reason.MALFORMED, field="acts", problem="name at least one kind of act")
    refusal = checks.name("reason", command.reason) or checks.note("note", command.note)
    if refusal:
        return refusal
    if command.pool_id is None:
        return tuple(t.ledger.pools)
    return checks.known_pool(t.ledger, command.pool_id) or (command.pool_id,)


def close_pool(t: Transcript, command: ClosePool) -> Refusal | None:
    """A pool without nodes takes no more reservations."""
    refusal = checks.known_pool(t.ledger, command.pool_id)
    if refusal:
        return refusal
    nodes = len(t.ledger.pools[command.pool_id].nodes)
    if nodes:
        state = f"has {nodes} nodes"
        return refuse(
            Reason.WRONG_STATE, kind="pool", id=command.pool_id, state=state, verb="close"
        )
    t.write(PoolClosed(command.pool_id))
    return None

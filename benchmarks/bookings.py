"""Bookings to measure with: single-node, multi-node and shares mixed, on a large fleet."""

from random import Random

from domain import commands as c
from domain.commands import Command
from domain.ids import NodeId, PoolId, PrincipalId, TenantId
from domain.policy import PoolPolicy
from domain.principal import Principal, Role
from domain.sizes import Size
from domain.submission import Submission
from domain.timespan import MICROSECONDS, Instant
from schemas.registry import registry

POOL = PoolId("P")
OPERATOR = Principal(PrincipalId("bench"), Role.OPERATOR)
T0 = Instant(1_767_225_600 * MICROSECONDS)
QUARTER = 900 * MICROSECONDS
HORIZON_QUARTERS = 2_800
TENANTS = 40


def submission(command: Command, key: str, at: Instant | None = T0) -> Submission:
    """A command of the bench's own operator."""
    contract, body = registry().encode(command)
    return Submission(OPERATOR, key, contract.type, body, at)


def fleet(nodes: int) -> list[Submission]:
    """Nodes of 8 GPUs in one pool, and tenants with quota for all of it."""
    commands: list[Command] = [c.OpenPool(POOL, "", PoolPolicy())]
    commands += [c.JoinNode(POOL, NodeId(f"n{n:05}"), "H100", 8) for n in range(nodes)]
    for n in range(TENANTS):
        tenant = TenantId(f"t{n}")
        commands += [c.RegisterTenant(tenant), c.GrantQuota(tenant, POOL, nodes * 8_000)]
    return [submission(command, f"set-up-{n}") for n, command in enumerate(commands)]


def booking(random: Random, start: Instant = T0) -> c.RequestReservation:
    """45 % below a node, 35 % a node, 10 % shares, 10 % gangs; hours to days, any quarter."""
    kind = random.random()
    if kind < 0.45:
        size = Size(gpus=random.choice((1, 1, 2, 4)))
    elif kind < 0.80:
        size = Size(gpus=8)
    elif kind < 0.90:
        size = Size(share_milli=random.choice((100, 250, 500)))
    else:
        size = Size(nodes=random.choice((2, 2, 4)))
    length = min(HORIZON_QUARTERS, max(1, int(random.expovariate(1 / 24))))
    first = random.randrange(1, HORIZON_QUARTERS - length + 2)
    begin = Instant(start + first * QUARTER)
    return c.RequestReservation(
        TenantId(f"t{random.randrange(TENANTS)}"),
        POOL,
        size,
        begin,
        Instant(begin + length * QUARTER),
        offers_max=0,
    )

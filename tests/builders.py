"""Commands and facts that are valid by default, so that a test says only what matters to it."""

from typing import Any

from domain import commands as c
from domain.facts.node import LevelGroup
from domain.ids import NodeId, PoolId, PrincipalId, ReservationId, TenantId
from domain.policy import PoolPolicy
from domain.principal import Principal, Role
from domain.sizes import ReservationClass, Shape, Size
from domain.timespan import MICROSECONDS, Instant

T0 = Instant(1_767_225_600 * MICROSECONDS)
"""2026-01-01T00:00:00Z."""

HOUR = 3600
POOL = PoolId("P")
OPERATOR = Principal(PrincipalId("operator-1"), Role.OPERATOR)
SERVICE = Principal(PrincipalId("service-1"), Role.SERVICE)
AUDITOR = Principal(PrincipalId("auditor-1"), Role.AUDITOR)
FINANCE = Principal(PrincipalId("finance-1"), Role.FINANCE)


def tenant(name: str) -> Principal:
    """A principal of a tenant."""
    return Principal(PrincipalId(f"user-of-{name}"), Role.TENANT, TenantId(name))


def at(hours: float = 0, seconds: float = 0) -> Instant:
    """An instant so long after T0."""
    return Instant(T0 + round((hours * HOUR + seconds) * MICROSECONDS))


def open_pool(**policy: Any) -> c.OpenPool:
    """A pool without gap and grace."""
    return c.OpenPool(POOL, "here", PoolPolicy(**policy))


def join(name: str, gpus: int = 8, model: str = "H100", rack: str = "r1") -> c.JoinNode:
    """A node of 8 H100."""
    return c.JoinNode(POOL, NodeId(name), model, gpus, levels=(LevelGroup("rack", rack),))


def register(name: str, parent: str | None = None) -> c.RegisterTenant:
    """A tenant."""
    return c.RegisterTenant(TenantId(name), TenantId(parent) if parent else None)


def grant(name: str, gpus: int = 1000, borrow: int = 0) -> c.GrantQuota:
    """A quota from now on."""
    return c.GrantQuota(TenantId(name), POOL, gpus * 1000, borrow * 1000)


def book(
    name: str = "a",
    *,
    gpus: int = 0,
    nodes: int = 0,
    share: int = 0,
    start: float = 1,
    end: float = 2,
    **more: Any,
) -> c.RequestReservation:
    """A booking of one hour, an hour from T0; 8 GPUs when no size is given."""
    if not (gpus or nodes or share):
        gpus = 8
    klass = ReservationClass(more.pop("klass", "guaranteed"))
    shape = Shape(more.pop("models", ()), more.pop("labels", {}), more.pop("same_level", None))
    return c.RequestReservation(
        TenantId(name),
        POOL,
        Size(gpus, nodes, share),
        at(start),
        at(end),
        klass=klass,
        shape=shape,
        **more,
    )


def reservation(text: str) -> ReservationId:
    """An id."""
    return ReservationId(text)

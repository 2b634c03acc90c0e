"""What all facts have in common: past tense, frozen, and at home in one stream."""

from typing import Protocol

from domain.ids import NodeId, PoolId, ReservationId, TenantId


class Fact(Protocol):
    """Something that happened. Its stream orders it among the facts of one subject."""

    @property
    def stream(self) -> str:
        """The subject's stream, as `kind/ID...`."""
        ...


class OfPool:
    """A fact of a pool."""

    __slots__ = ()
    pool_id: PoolId

    @property
    def stream(self) -> str:
        """The pool's stream."""
        return f"pool/{self.pool_id}"


class OfLevel:
    """A fact of one group of a level: a switch, a rack, an NVLink domain."""

    __slots__ = ()
    pool_id: PoolId
    level: str
    group: str

    @property
    def stream(self) -> str:
        """The group's stream."""
        return f"level/{self.pool_id}/{self.level}/{self.group}"


class OfNode:
    """A fact of a node."""

    __slots__ = ()
    pool_id: PoolId
    node_id: NodeId

    @property
    def stream(self) -> str:
        """The node's stream."""
        return f"node/{self.pool_id}/{self.node_id}"


class OfTenant:
    """A fact of a tenant."""

    __slots__ = ()
    tenant_id: TenantId

    @property
    def stream(self) -> str:
        """The tenant's stream."""
        return f"tenant/{self.tenant_id}"


class OfQuota:
    """A fact of a tenant's quota in a pool."""

    __slots__ = ()
    tenant_id: TenantId
    pool_id: PoolId

    @property
    def stream(self) -> str:
        """The quota's stream."""
        return f"quota/{self.tenant_id}/{self.pool_id}"


class OfReservation:
    """A fact of a reservation."""

    __slots__ = ()
    reservation_id: ReservationId

    @property
    def stream(self) -> str:
        """The reservation's stream."""
        return f"reservation/{self.reservation_id}"

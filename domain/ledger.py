"""The state of one shard, folded from its facts: everything that deciding needs to know."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from domain.changes import CellFreed, CellTaken, Change
from domain.facts.hardware import ReportStamp
from domain.fleet_state import Maintenance, Node, Pool, Tenant
from domain.ids import GrantId, MaintenanceId, NodeId, PoolId, ReservationId, TenantId
from domain.periods import Period, ProviderSpan
from domain.pricing import PriceVersion
from domain.quota import Account
from domain.quoting import PriceList
from domain.reservation import Holding, Reservation
from domain.timers import Timers
from domain.timespan import Instant
from domain.undo import Undo
from domain.units import Piece

SHARD_MILLI = 1 << 40
"""The base offsets of shard k start at k times this, so that no two shards share a milli-GPU."""

OVER_KEPT_SECONDS = 30 * 86_400
"""How long a reservation that is over stays in memory, to be told apart from an unknown one."""


class Holder(Protocol):
    """Whoever holds units: a reservation, or a maintenance, which is no tenant's."""

    @property
    def holder_id(self) -> ReservationId:
        """Its id among all holders."""
        ...

    @property
    def owner(self) -> TenantId | None:
        """The tenant whose units they are."""
        ...


@dataclass(slots=True)
class Ledger:
    """Pools, nodes, tenants, quota and reservations of one shard at one position of its log.

    Only `evolve` changes it, through `undo`, and leaves in `changes` what the placer's index
    and the exclusion cells have to follow.
    """

    shard: int = 0
    pools: dict[PoolId, Pool] = field(default_factory=dict)
    nodes: dict[NodeId, Node] = field(default_factory=dict)
    node_order: list[Node] = field(default_factory=list)
    tenants: dict[TenantId, Tenant] = field(default_factory=dict)
    accounts: dict[tuple[TenantId, PoolId], Account] = field(default_factory=dict)
    grants: dict[GrantId, tuple[TenantId, PoolId]] = field(default_factory=dict)
    reservations: dict[ReservationId, Reservation] = field(default_factory=dict)
    maintenances: dict[MaintenanceId, Maintenance] = field(default_factory=dict)
    possessions: dict[ReservationId, dict[NodeId, tuple[Piece, ...]]] = field(default_factory=dict)
    """What the hardware handed over and has not reported free."""
    reports: dict[str, tuple[str, int]] = field(default_factory=dict)
    """For each source of reports its session and the last number heard."""
    versions: dict[str, int] = field(default_factory=dict)
    """The last version of each stream that can still grow."""
    price_books: dict[str, tuple[PriceVersion, ...]] = field(default_factory=dict)
    """All versions of each book, in the order in which they were published."""
    price_list: PriceList = field(default_factory=PriceList)
    """Which of them a booking is quoted by; it follows from them."""
    periods: dict[TenantId, tuple[Period, ...]] = field(default_factory=dict)
    """The periods of each billing account that are closing or closed, in order."""
    pool_hours: dict[PoolId, Instant] = field(default_factory=dict)
    """Up to where the hours of each pool are closed."""
    provider_spans: dict[tuple[str, PoolId], tuple[ProviderSpan, ...]] = field(default_factory=dict)
    """What each provider's imported invoices for a pool are for."""
    over: deque[tuple[Instant, ReservationId]] = field(default_factory=deque)
    """Reservations that are over, in the order in which they ended, until they are forgotten."""
    clearing: deque[tuple[Instant, ReservationId]] = field(default_factory=deque)
    """Those of them whose units still have a gap to run out."""
    base_milli: int = 0
    """The base offset of the node that joins next."""
    timers: Timers = field(default_factory=Timers)
    undo: Undo = field(default_factory=Undo)
    changes: list[Change] = field(default_factory=list)

    def chain(self, tenant_id: TenantId, pool_id: PoolId) -> Iterator[Account]:
        """The accounts of a tenant and of its ancestors in a pool, narrowest first."""
        tenant: Tenant | None = self.tenants[tenant_id]
        while tenant is not None:
            account = self.accounts.get((tenant.id, pool_id))
            if account is not None:
                yield account
            tenant = self.tenants[tenant.parent_id] if tenant.parent_id else None

    def quote(self, tenant_id: TenantId, at: Instant) -> str:
        """The price book that holds for a tenant at an instant, as it stands; empty for none."""
        if not self.price_books:
            return ""
        return self.price_list.quote(self._lineage(tenant_id), at)

    def _lineage(self, tenant_id: TenantId) -> Iterator[TenantId]:
        """A tenant and those that it lies in, narrowest first."""
        name: TenantId | None = tenant_id
        while name is not None:
            yield name
            name = self.tenants[name].parent_id

    def is_within(self, tenant_id: TenantId, ancestor: TenantId) -> bool:
        """Whether a tenant is another one, or lies inside it."""
        tenant = self.tenants.get(tenant_id)
        while tenant is not None:
            if tenant.id == ancestor:
                return True
            tenant = self.tenants.get(tenant.parent_id) if tenant.parent_id else None
        return False

    def is_stale(self, stamp: ReportStamp) -> bool:
        """Whether a report was heard before."""
        session, number = self.reports.get(stamp.source, ("", -1))
        return session == stamp.session and stamp.number <= number

    def hold(self, holder: Holder, holdings: Iterable[Holding]) -> None:
        """Give units to a holder; the truth, the index and the cells follow."""
        for holding in holdings:
            node = self.nodes[holding.piece.node_id]
            self._lane_add(node, holding, holder)
            self.undo.add(self._lane_remove, node, holding, holder)
            self.changes.append(
                CellTaken(
                    node.index,
                    node.base_milli,
                    holding.piece,
                    holding.start,
                    holding.clear,
                    holder.owner,
                    holder.holder_id,
                )
            )

    def release(
        self, holder: Holder, holdings: Iterable[Holding], *, is_past: bool = False
    ) -> None:
        """Take units from a holder: what is past leaves memory but not the record."""
        for holding in holdings:
            node = self.nodes[holding.piece.node_id]
            self._lane_remove(node, holding, holder)
            self.undo.add(self._lane_add, node, holding, holder)
            self.changes.append(
                CellFreed(
                    node.index,
                    node.base_milli,
                    holding.piece,
                    holding.start,
                    holding.clear,
                    holder.owner,
                    holder.holder_id,
                    is_past,
                )
            )

    @staticmethod
    def _lane_add(node: Node, holding: Holding, holder: Holder) -> None:
        node.lanes.add(holding.piece, holding.start, holding.clear, holder.holder_id)
        node.holders[holder.holder_id] = node.holders.get(holder.holder_id, 0) + 1

    @staticmethod
    def _lane_remove(node: Node, holding: Holding, holder: Holder) -> None:
        node.lanes.remove(holding.piece, holding.start, holding.clear, holder.holder_id)
        left = node.holders[holder.holder_id] - 1
        if left:
            node.holders[holder.holder_id] = left
        else:
            del node.holders[holder.holder_id]

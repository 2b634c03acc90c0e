"""How much a tenant may still book in a pool: dated grants against dated commitments."""

import itertools
from dataclasses import dataclass, field

from domain.ids import GrantId, PoolId, TenantId
from domain.sizes import ReservationClass
from domain.timeline import Timeline
from domain.timespan import Instant, Timespan


@dataclass(frozen=True, slots=True)
class Grant:
    """One entitlement over a span."""

    id: GrantId
    nominal_milli: int
    borrow_milli: int
    lend_milli: int
    start: Instant
    end: Instant

    @property
    def span(self) -> Timespan:
        """When it holds."""
        return Timespan(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Where a limit is passed: whose, how much it is, what is left of it, and when."""

    tenant_id: TenantId
    limit_milli: int
    left_milli: int
    at: Instant


@dataclass(frozen=True, slots=True)
class Headroom:
    """What is left of a tenant's limit over a span: the limit, its use, and the instant of the least."""

    tenant_id: TenantId
    limit_milli: int
    used_milli: int
    at: Instant

    @property
    def left_milli(self) -> int:
        """Negative where more is booked than is granted now."""
        return self.limit_milli - self.used_milli


@dataclass(slots=True)
class Account:
    """A tenant's grants in a pool, and what it and its children have committed of them."""

    tenant_id: TenantId
    pool_id: PoolId
    grants: dict[GrantId, Grant] = field(default_factory=dict)
    guaranteed: Timeline = field(default_factory=Timeline)
    borrowed: Timeline = field(default_factory=Timeline)
    overflow: Timeline = field(default_factory=Timeline)
    live_milli: int = 0
    """All that is committed at any time, summed: never below the peak of any instant."""

    def timeline(self, klass: ReservationClass) -> Timeline:
        """Where a class is counted."""
        match klass:
            case ReservationClass.GUARANTEED:
                return self.guaranteed
            case ReservationClass.BORROWED:
                return self.borrowed
            case ReservationClass.OVERFLOW:
                return self.overflow

    def shortfall(self, klass: ReservationClass, span: Timespan, milli: int) -> Shortfall | None:
        """The first instant of a span at which the amount does not fit, or None when it does."""
        if self.live_milli + milli <= self._sure_limit(klass, span):
            return None
        for part in self._parts(span):
            limit = self._limit(klass, part.start)
            if self.live_milli + milli <= limit:
                continue
            used, at = self._used(klass, part)
            if used + milli > limit:
                return Shortfall(self.tenant_id, limit, limit - used, at)
        return None

    def headroom(self, klass: ReservationClass, span: Timespan) -> Headroom:
        """What is left at the tightest instant of a span."""
        found: list[Headroom] = []
        for part in self._parts(span):
            used, at = self._used(klass, part)
            found.append(Headroom(self.tenant_id, self._limit(klass, part.start), used, at))
        return min(found, key=lambda part: (part.left_milli, part.at))

    def _sure_limit(self, klass: ReservationClass, span: Timespan) -> int:
        """What grants that hold for the whole span allow; the limit is nowhere below it."""
        limit = 0
        for grant in self.grants.values():
            if grant.start <= span.start and span.end <= grant.end:
                limit += grant.nominal_milli
                if klass is not ReservationClass.GUARANTEED:
                    limit += grant.borrow_milli
        return limit

    def _limit(self, klass: ReservationClass, at: Instant) -> int:
        """Nominal for what is guaranteed; nominal and the borrowing limit for all together."""
        grants = [grant for grant in self.grants.values() if grant.start <= at < grant.end]
        nominal = sum(grant.nominal_milli for grant in grants)
        if klass is ReservationClass.GUARANTEED:
            return nominal
        return nominal + sum(grant.borrow_milli for grant in grants)

    def _used(self, klass: ReservationClass, span: Timespan) -> tuple[int, Instant]:
        """The most that counts against the limit of a class, and when."""
        if klass is ReservationClass.GUARANTEED:
            used, at = self.guaranteed.peak(span.start, span.end)
            return used, Instant(at)
        edges = [
            span.start,
            *self.guaranteed.changes(span.start, span.end),
            *self.borrowed.changes(span.start, span.end),
        ]
        at = max(edges, key=lambda edge: (self._both(edge), -edge))
        return self._both(at), Instant(at)

    def _both(self, at: int) -> int:
        return self.guaranteed.at(at) + self.borrowed.at(at)

    def _parts(self, span: Timespan) -> list[Timespan]:
        """The span, cut where a grant begins or ends."""
        edges = {span.start, span.end}
        for grant in self.grants.values():
            if span.start < grant.start < span.end:
                edges.add(grant.start)
            if span.start < grant.end < span.end:
                edges.add(grant.end)
        cuts = sorted(edges)
        return [Timespan(start, end) for start, end in itertools.pairwise(cuts)]

"""How units come to a holder and leave it, and how commitments follow."""

from collections.abc import Iterable

from domain.fleet_state import Node, Pool
from domain.ids import PoolId, TenantId
from domain.ledger import OVER_KEPT_SECONDS, Ledger
from domain.quota import Account
from domain.reservation import Holding, Reservation, cut
from domain.sizes import ReservationClass
from domain.states import RESERVATION_STEPS, RUNNING, SHORT, UPCOMING, ReservationState
from domain.timespan import Instant, Timespan, seconds
from domain.units import Piece


def account_of(ledger: Ledger, tenant_id: TenantId, pool_id: PoolId) -> Account:
    """A tenant's account in a pool, opened when it is first needed."""
    account = ledger.accounts.get((tenant_id, pool_id))
    if account is None:
        account = Account(tenant_id, pool_id)
        ledger.undo.put(ledger.accounts, (tenant_id, pool_id), account)
    return account


def commit(ledger: Ledger, reservation: Reservation, start: int, end: int, milli: int) -> None:
    """Count an amount over a span for a reservation's tenant and all above it."""
    if start >= end or not milli:
        return
    tenant_id: TenantId | None = reservation.tenant_id
    while tenant_id is not None:
        account = account_of(ledger, tenant_id, reservation.pool_id)
        timeline = account.timeline(reservation.klass)
        timeline.add(start, end, milli)
        ledger.undo.add(timeline.add, start, end, -milli)
        tenant_id = ledger.tenants[tenant_id].parent_id


def count_live(ledger: Ledger, reservation: Reservation, milli: int) -> None:
    """Change the sum of all live amounts for a reservation's tenant and all above it."""
    tenant_id: TenantId | None = reservation.tenant_id
    while tenant_id is not None:
        account = account_of(ledger, tenant_id, reservation.pool_id)
        ledger.undo.set(account, "live_milli", account.live_milli + milli)
        tenant_id = ledger.tenants[tenant_id].parent_id


def take(ledger: Ledger, reservation: Reservation, holdings: tuple[Holding, ...]) -> None:
    """Entitle a reservation to units."""
    ledger.hold(reservation, holdings)
    ledger.undo.set(reservation, "holdings", reservation.holdings + holdings)


def take_away(
    ledger: Ledger, reservation: Reservation, pieces: Iterable[Piece], span: Timespan
) -> None:
    """End a reservation's entitlement to pieces over a span, and keep what is left of them."""
    for piece in pieces:
        kept: list[Holding] = []
        for holding in reservation.holdings:
            rest = cut(holding, piece, span)
            if rest is None:
                kept.append(holding)
                continue
            ledger.release(reservation, (holding,))
            ledger.hold(reservation, rest)
            kept += rest
        ledger.undo.set(reservation, "holdings", tuple(kept))


def cut_short(ledger: Ledger, reservation: Reservation, at: Instant) -> None:
    """End a reservation's entitlement to everything at an instant."""
    if all(holding.end <= at for holding in reservation.holdings):
        return
    kept: list[Holding] = []
    for holding in reservation.holdings:
        if holding.end <= at:
            kept.append(holding)
            continue
        ledger.release(reservation, (holding,))
        if holding.start < at:
            past = Holding(holding.piece, holding.start, at, holding.gap)
            ledger.hold(reservation, (past,))
            kept.append(past)
    ledger.undo.set(reservation, "holdings", tuple(kept))


def shorten_gaps(ledger: Ledger, node: Node, start: Instant) -> None:
    """Let no cleaning gap on a node reach beyond an instant, where something else begins."""
    for holder in sorted(node.holders):
        reservation = ledger.reservations.get(holder)
        if reservation is None:
            continue
        long = tuple(
            h
            for h in reservation.holdings
            if h.piece.node_id == node.id and h.end <= start < h.clear
        )
        if long:
            short = tuple(Holding(h.piece, h.start, h.end, start - h.end) for h in long)
            ledger.release(reservation, long)
            ledger.hold(reservation, short)
            kept = tuple(h for h in reservation.holdings if h not in long)
            ledger.undo.set(reservation, "holdings", kept + short)


def step(ledger: Ledger, reservation: Reservation, state: ReservationState) -> None:
    """Move a reservation to its next state, and keep its pool's lists in step."""
    if state is reservation.state:
        return
    assert state in RESERVATION_STEPS[reservation.state], (reservation.state, state)
    ledger.undo.set(reservation, "state", state)
    enlist(ledger, ledger.pools[reservation.pool_id], reservation)


def enlist(ledger: Ledger, pool: Pool, reservation: Reservation) -> None:
    """Keep a reservation on exactly those lists of its pool that its state names."""
    wanted = (
        (pool.upcoming, reservation.state in UPCOMING),
        (pool.queued, reservation.state is ReservationState.QUEUED),
        (
            pool.borrowed,
            reservation.klass is ReservationClass.BORROWED
            and reservation.state in UPCOMING | RUNNING,
        ),
        (pool.short, reservation.state in SHORT),
    )
    for members, belongs in wanted:
        if belongs and reservation.id not in members:
            ledger.undo.put(members, reservation.id, None)
        elif not belongs and reservation.id in members:
            ledger.undo.drop(members, reservation.id)


def finish(ledger: Ledger, reservation: Reservation, at: Instant) -> None:
    """Let go of everything: what lies ahead is free, what is past leaves memory."""
    cut_short(ledger, reservation, at)
    commit(ledger, reservation, reservation.start, reservation.end, -reservation.milli)
    count_live(ledger, reservation, -reservation.milli)
    clear = max((h.clear for h in reservation.holdings), default=at)
    ledger.clearing.append((clear, reservation.id))
    ledger.undo.add(ledger.clearing.pop)
    ledger.over.append((at, reservation.id))
    ledger.undo.add(ledger.over.pop)
    _clear(ledger, at)
    _forget(ledger, at)


def _clear(ledger: Ledger, now: Instant) -> None:
    """Drop the past holdings of those whose gap has run out."""
    while ledger.clearing and ledger.clearing[0][0] <= now:
        entry = ledger.clearing.popleft()
        ledger.undo.add(ledger.clearing.appendleft, entry)
        reservation = ledger.reservations[entry[1]]
        ledger.release(reservation, reservation.holdings, is_past=True)
        ledger.undo.set(reservation, "holdings", ())


def _forget(ledger: Ledger, now: Instant) -> None:
    """Drop those that have been over for long, and their streams, which cannot grow any more."""
    kept = seconds(OVER_KEPT_SECONDS)
    while ledger.over and ledger.over[0][0] + kept <= now:
        entry = ledger.over[0]
        if ledger.reservations[entry[1]].holdings or entry[1] in ledger.possessions:
            break
        ledger.over.popleft()
        ledger.undo.add(ledger.over.appendleft, entry)
        ledger.undo.drop(ledger.reservations, entry[1])
        ledger.undo.drop(ledger.versions, f"reservation/{entry[1]}")

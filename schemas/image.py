"""The whole state of a ledger as canonical bytes: for snapshots, and to compare two states.

Only what facts say is in it. Lists of waiting reservations, commitments over time, lanes and
timers are folded again from it, so two ledgers are equal exactly when their images are.
"""

import dataclasses
import gc
import hashlib
import json
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from domain.consent import OverflowMode
from domain.environment import EnvironmentState
from domain.evolve.holding import commit, count_live, enlist
from domain.fleet_state import Maintenance, Node, Pool, Tenant
from domain.ids import PoolId, ReservationId
from domain.ledger import Ledger
from domain.periods import Period, ProviderSpan
from domain.policy import PoolPolicy
from domain.pricing import PriceVersion
from domain.quota import Account, Grant
from domain.quoting import price_list
from domain.reservation import Holding, Renewal, Reservation
from domain.sizes import ReservationClass, Shape, Size
from domain.states import AWAY, OVER, RUNNING, UPCOMING, NodeState, ReservationState
from domain.timers import Due
from domain.timespan import FAR_FUTURE, seconds
from domain.units import Piece
from schemas.codec import from_plain, to_plain

IMAGE_FORMAT = hashlib.sha256(b"gpuledger ledger image 8").digest()
"""Bears on what a snapshot means; a snapshot of another format is not read."""

_POOL = ("id", "number", "site", "is_open", "thawed_at")
_NODE = (
    "id",
    "index",
    "pool_id",
    "base_milli",
    "model",
    "gpus",
    "joined_at",
    "since",
    "heard_at",
    "boot_id",
    "driver_load_id",
    "lost_at",
    "grace_until",
    "intent_version",
)
_RESERVATION = tuple(field.name for field in dataclasses.fields(Reservation))
_KLASS, _SIZE, _SHAPE, _STATE, _HOLDINGS, _RENEWAL, _ENVIRONMENT = map(
    _RESERVATION.index, ("klass", "size", "shape", "state", "holdings", "renewal", "environment")
)
_CLASSES = {each.value: each for each in ReservationClass}
_STATES = {each.value: each for each in ReservationState}
_TIMED = UPCOMING | RUNNING | {ReservationState.QUEUED}
_FORGET_EVERY = 1_000
"""Holders, between two times that what led to them is forgotten."""


def image_of(ledger: Ledger) -> bytes:
    """The canonical bytes of a ledger's state: JSON, keys sorted, no spaces."""
    with _cycles_left_alone():
        return json.dumps(_image(ledger), sort_keys=True, separators=(",", ":")).encode()


def _image(ledger: Ledger) -> dict[str, Any]:
    sizes, shapes = _Distinct(), _Distinct()
    reservations = [_reservation(r, sizes, shapes) for _, r in sorted(ledger.reservations.items())]
    return {
        "shard": ledger.shard,
        "base_milli": ledger.base_milli,
        "pools": [_pool(pool) for pool in ledger.pools.values()],
        "nodes": [_node(node) for node in ledger.node_order],
        "tenants": [_tenant(tenant) for _, tenant in sorted(ledger.tenants.items())],
        "grants": [
            [*key, *map(_plain, _sorted_grants(account))]
            for key, account in sorted(ledger.accounts.items())
            if account.grants
        ],
        "sizes": sizes.texts,
        "shapes": shapes.texts,
        "reservations": reservations,
        "maintenances": [_maintenance(m) for _, m in sorted(ledger.maintenances.items())],
        "possessions": {
            reservation_id: {node: [_plain(p) for p in pieces] for node, pieces in had.items()}
            for reservation_id, had in ledger.possessions.items()
        },
        "price_books": [
            _plain(version) for _, book in sorted(ledger.price_books.items()) for version in book
        ],
        "periods": [
            {**_plain(period), "row_root": period.row_root.hex()}
            for _, periods in sorted(ledger.periods.items())
            for period in periods
        ],
        "pool_hours": ledger.pool_hours,
        "provider_spans": [
            [*key, *map(_plain, spans)] for key, spans in sorted(ledger.provider_spans.items())
        ],
        "reports": ledger.reports,
        "versions": ledger.versions,
        "over": list(ledger.over),
        "clearing": list(ledger.clearing),
    }


def hash_of(image: bytes) -> bytes:
    """The state hash: SHA-256 of the canonical bytes."""
    return hashlib.sha256(image).digest()


def pack(image: bytes) -> bytes:
    """As a snapshot keeps it."""
    return zlib.compress(image, 1)


def unpack(packed: bytes) -> bytes:
    """The inverse of `pack`."""
    return zlib.decompress(packed)


def _plain(thing: Any) -> Any:  # noqa: ANN401 - any frozen dataclass
    return to_plain(type(thing))(thing)


def _some(thing: Any, names: tuple[str, ...]) -> dict[str, Any]:  # noqa: ANN401 - state classes
    return {name: getattr(thing, name) for name in names}


def _sorted_grants(account: Account) -> list[Grant]:
    return [grant for _, grant in sorted(account.grants.items())]


def _pool(pool: Pool) -> dict[str, Any]:
    return {
        **_some(pool, _POOL),
        "policy": _plain(pool.policy),
        "frozen": sorted(pool.frozen),
        "preempted": [list(entry) for entry in pool.preempted],
    }


def _node(node: Node) -> dict[str, Any]:
    return {
        **_some(node, _NODE),
        "levels": [list(level) for level in node.levels],
        "labels": dict(node.labels),
        "state": node.state.value,
        "state_before": node.state_before.value if node.state_before else None,
        "failed_slots": sorted(node.failed_slots),
    }


def _tenant(tenant: Tenant) -> dict[str, Any]:
    return {
        "id": tenant.id,
        "parent_id": tenant.parent_id,
        "tags": dict(tenant.tags),
        "is_open": tenant.is_open,
        "consents": {pool: [mode.value, cap] for pool, (mode, cap) in tenant.consents.items()},
    }


def _holdings(holdings: tuple[Holding, ...]) -> list[list[Any]]:
    return [
        [h.piece.node_id, h.piece.first_milli, h.piece.width_milli, h.start, h.end, h.gap]
        for h in sorted(holdings)
    ]


class _Distinct:
    """Values that many have in common, each once, in the order in which they were met."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}
        self._met: dict[int, int] = {}

    def number(self, thing: Size | Shape) -> int:
        """Which one it is; the same object is looked at once, for it lives as long as the ledger."""
        known = self._met.get(id(thing))
        if known is None:
            known = self._met[id(thing)] = self._number(thing)
        return known

    def _number(self, thing: Size | Shape) -> int:
        text = json.dumps(_plain(thing), sort_keys=True)
        if text not in self._numbers:
            self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return self._numbers[text]


def _reservation(reservation: Reservation, sizes: _Distinct, shapes: _Distinct) -> list[Any]:
    """In the order of its fields."""
    told = {
        "klass": reservation.klass.value,
        "size": sizes.number(reservation.size),
        "shape": shapes.number(reservation.shape),
        "state": reservation.state.value,
        "tags": dict(reservation.tags),
        "holdings": _holdings(reservation.holdings),
        "renewal": _plain(reservation.renewal) if reservation.renewal else None,
        "environment": _plain(reservation.environment) if reservation.environment else None,
    }
    return [told[n] if n in told else getattr(reservation, n) for n in _RESERVATION]


def _maintenance(planned: Maintenance) -> dict[str, Any]:
    values = dataclasses.asdict(planned)
    values["holdings"] = _holdings(planned.holdings)
    return values


def ledger_from(image: bytes) -> Ledger:
    """The ledger whose image this is, with everything that is folded from it."""
    with _cycles_left_alone():
        return _restored(json.loads(image))


@contextmanager
def _cycles_left_alone() -> Iterator[None]:
    """Millions of things come into being and none of them goes: looking for cycles is half the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _restored(values: dict[str, Any]) -> Ledger:
    ledger = Ledger(shard=values["shard"], base_milli=values["base_milli"])
    for pool in values["pools"]:
        _restore_pool(ledger, pool)
    for node in values["nodes"]:
        _restore_node(ledger, node)
    for tenant in values["tenants"]:
        consents = {
            PoolId(pool): (OverflowMode(mode), cap)
            for pool, (mode, cap) in tenant.pop("consents").items()
        }
        ledger.tenants[tenant["id"]] = Tenant(**tenant, consents=consents)
    for tenant_id, pool_id, *grants in values["grants"]:
        account = Account(tenant_id, pool_id)
        ledger.accounts[tenant_id, pool_id] = account
        for grant in map(from_plain(Grant), grants):
            account.grants[grant.id] = grant
            ledger.grants[grant.id] = (tenant_id, pool_id)
            if grant.end < FAR_FUTURE:
                ledger.timers.set(grant.end, Due.GRANT_END, grant.id)
    ledger.possessions = {
        ReservationId(reservation_id): {
            node: tuple(map(from_plain(Piece), pieces)) for node, pieces in had.items()
        }
        for reservation_id, had in values["possessions"].items()
    }
    sizes = [from_plain(Size)(json.loads(text)) for text in values["sizes"]]
    shapes = [from_plain(Shape)(json.loads(text)) for text in values["shapes"]]
    for number, row in enumerate(values["reservations"]):
        _restore_reservation(ledger, row, sizes, shapes)
        if number % _FORGET_EVERY == 0:
            _settle(ledger)
    for planned in values["maintenances"]:
        _restore_maintenance(ledger, planned)
    _restore_billing(ledger, values)
    ledger.reports = {source: tuple(heard) for source, heard in values["reports"].items()}
    ledger.versions = values["versions"]
    ledger.over = deque(tuple(entry) for entry in values["over"])
    ledger.clearing = deque(tuple(entry) for entry in values["clearing"])
    _settle(ledger)
    return ledger


def _settle(ledger: Ledger) -> None:
    """Nothing of it is taken back or told: it is as it was."""
    ledger.undo.forget()
    ledger.changes.clear()


def _restore_billing(ledger: Ledger, values: dict[str, Any]) -> None:
    for version in map(from_plain(PriceVersion), values["price_books"]):
        book = ledger.price_books.get(version.book_id, ())
        ledger.price_books[version.book_id] = (*book, version)
    ledger.price_list = price_list(ledger.price_books)
    for entry in values["periods"]:
        period = from_plain(Period)(entry | {"row_root": bytes.fromhex(entry["row_root"])})
        periods = ledger.periods.get(period.tenant_id, ())
        ledger.periods[period.tenant_id] = (*periods, period)
    ledger.pool_hours = values["pool_hours"]
    for provider, pool_id, *spans in values["provider_spans"]:
        ledger.provider_spans[provider, pool_id] = tuple(map(from_plain(ProviderSpan), spans))


def _restore_pool(ledger: Ledger, values: dict[str, Any]) -> None:
    values["policy"] = from_plain(PoolPolicy)(values["policy"])
    values["frozen"] = frozenset(values["frozen"])
    values["preempted"] = tuple((at, milli) for at, milli in values["preempted"])
    ledger.pools[values["id"]] = Pool(**values)


def _restore_node(ledger: Ledger, values: dict[str, Any]) -> None:
    values["levels"] = tuple((level, group) for level, group in values["levels"])
    values["state"] = NodeState(values["state"])
    values["failed_slots"] = frozenset(values["failed_slots"])
    if values["state_before"] is not None:
        values["state_before"] = NodeState(values["state_before"])
    node = Node(**values)
    ledger.nodes[node.id] = node
    ledger.node_order.append(node)
    if node.grace_until is not None and node.state in AWAY:
        silent = node.state is NodeState.SUSPECTED
        due = Due.NODE_GRACE if silent else Due.REBOOT_GRACE
        ledger.timers.set(node.grace_until, due, node.id)
    if node.state is not NodeState.RETIRED:
        pool = ledger.pools[node.pool_id]
        pool.nodes[node.id] = None
        kind = (node.model, node.gpus)
        pool.kinds[kind] = pool.kinds.get(kind, 0) + 1


def _holdings_from(rows: list[list[Any]]) -> tuple[Holding, ...]:
    return tuple(
        Holding(Piece(node, first, width), start, end, gap)
        for node, first, width, start, end, gap in rows
    )


def _restore_reservation(
    ledger: Ledger, row: list[Any], sizes: list[Size], shapes: list[Shape]
) -> None:
    row[_KLASS] = _CLASSES[row[_KLASS]]
    row[_SIZE] = sizes[row[_SIZE]]
    row[_SHAPE] = shapes[row[_SHAPE]]
    row[_STATE] = _STATES[row[_STATE]]
    row[_HOLDINGS] = _holdings_from(row[_HOLDINGS])
    if row[_RENEWAL] is not None:
        row[_RENEWAL] = from_plain(Renewal)(row[_RENEWAL])
    if row[_ENVIRONMENT] is not None:
        row[_ENVIRONMENT] = from_plain(EnvironmentState)(row[_ENVIRONMENT])
    r = Reservation(*row)
    ledger.reservations[r.id] = r
    if r.state in OVER and not r.holdings and r.id not in ledger.possessions:
        return
    ledger.hold(r, r.holdings)
    enlist(ledger, ledger.pools[r.pool_id], r)
    if r.state in OVER:
        if r.id in ledger.possessions:
            grace = seconds(ledger.pools[r.pool_id].policy.ack_grace_seconds)
            ledger.timers.set(type(r.end)(r.end + grace), Due.PRESUME, r.id)
        return
    if r.state is not ReservationState.QUEUED:
        commit(ledger, r, r.start, r.end, r.milli)
        count_live(ledger, r, r.milli)
    _restore_timers(ledger, r)


def _restore_timers(ledger: Ledger, r: Reservation) -> None:
    if r.until is not None:
        ledger.timers.set(r.until, Due.LAPSE, r.id)
    if r.state in UPCOMING:
        ledger.timers.set(r.start, Due.START, r.id)
    if r.state in _TIMED:
        ledger.timers.set(r.end, Due.GIVE_WAY if r.order_id else Due.END, r.id)
    if r.renewal is not None and r.renewal.due is not None:
        ledger.timers.set(r.renewal.due, Due.RENEW, r.id)
    inner = {e for h in r.holdings for e in (h.start, h.end) if r.start < e < r.end}
    for edge in sorted(inner):
        ledger.timers.set(edge, Due.RECHECK, r.id)


def _restore_maintenance(ledger: Ledger, values: dict[str, Any]) -> None:
    values["holdings"] = _holdings_from(values["holdings"])
    planned = Maintenance(**values)
    ledger.maintenances[planned.id] = planned
    ledger.hold(planned, planned.holdings)
    ledger.timers.set(planned.end, Due.MAINTENANCE_END, planned.id)
    if not planned.started:
        ledger.timers.set(planned.start, Due.MAINTENANCE_START, planned.id)

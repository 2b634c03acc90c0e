"""The books balance: for any history, amounts, costs and coins add up, exactly."""

from collections import defaultdict
from decimal import Decimal
from random import Random

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from domain import commands as c
from domain.commands.node import Health
from domain.ids import NodeId, ReservationId, TenantId
from domain.pricing import Rate, SkuMeter, contracted
from domain.timespan import Instant, Timespan
from domain.units import Piece
from projections.charges import by_account, originals, share, to_coins
from projections.consumption import POSSESSED
from projections.focus import by_day, focus_rows
from projections.invoicing import invoices
from projections.rating import Charge, ChargeKey, hours, rate, split
from projections.usage import UsageRow
from tests import builders as b
from tests.billing import BilledWorld, lint

SLOW = settings(
    phases=(Phase.explicit, Phase.generate),
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
MONEY = st.decimals(-1000, 1000, places=6)
QUARTERS = st.integers(0, 40)
"""Quarters of an hour from T0."""

BOOKINGS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.integers(1, 12),
        QUARTERS,
        st.integers(1, 12),
        st.sampled_from(["guaranteed", "borrowed"]),
        st.integers(0, 120),
    ),
    min_size=1,
    max_size=6,
)
"""Tenant, GPUs, start, length in quarters, class, seconds to the hand-over."""

SIGHTINGS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 7), QUARTERS, st.integers(1, 8), st.booleans()),
    max_size=5,
)
"""Which booking, which slot, from when, how long in quarters, whether occupied."""


def quarter(count: int) -> Instant:
    return b.at(count / 4)


def told(bookings: list[tuple[str, int, int, int, str, int]], broken: int | None) -> BilledWorld:
    """A world in which all of that was booked, handed over, and perhaps broken and mended."""
    world = BilledWorld(nodes=3)
    made = []
    for name, gpus, start, length, klass, delay in sorted(bookings, key=lambda x: x[2]):
        ask = b.book(name, gpus=gpus, start=start / 4, end=(start + length) / 4, klass=klass)
        outcome = world.send(ask)
        made += [
            (fact.stream.split("/")[1], delay)
            for fact in outcome.facts
            if fact.type.startswith("ReservationConfirmed")
        ]
    acts: list[tuple[Instant, int, str]] = []
    for reservation_id, delay in made:
        booked = world.sequencer.ledger.reservations[ReservationId(reservation_id)]
        handed = Instant(booked.start + delay * 1_000_000)
        if handed < booked.end:
            acts.append((handed, 0, reservation_id))
        acts.append((Instant(booked.end + 20_000_000), 1, reservation_id))
    if broken is not None:
        acts += [(quarter(broken), 2, ""), (quarter(broken + 3), 3, "")]
    for at, kind, which in sorted(acts):
        world.advance(at)
        if kind >= 2:
            health = Health.FAILED if kind == 2 else Health.RECOVERED
            world.send(c.ReportHealth(b.POOL, health, "ecc", NodeId("n1"), (0, 1), boot_id="x"))
            continue
        booked = world.sequencer.ledger.reservations[ReservationId(which)]
        (world.applied if kind == 0 else world.freed)(booked, at)
    world.advance(quarter(80))
    return world


def see(world: BilledWorld, sightings: list[tuple[int, int, int, int, bool]]) -> None:
    """Late telemetry of some of the bookings."""
    known = sorted(world.sequencer.ledger.reservations)
    for which, slot, start, length, occupied in sightings:
        booked = world.sequencer.ledger.reservations[known[which % len(known)]] if known else None
        if booked is None:
            return
        for node in ("n1", "n2", "n3"):
            piece = (Piece(NodeId(node), slot * 1000, 1000),)
            world.observed(
                booked, piece, quarter(start), quarter(start + length), occupied=occupied
            )


@SLOW
@given(BOOKINGS, st.none() | QUARTERS, SIGHTINGS)
def test_every_unit_second_is_somebodys_and_is_charged_once(
    bookings: list[tuple[str, int, int, int, str, int]],
    broken: int | None,
    sightings: list[tuple[int, int, int, int, bool]],
) -> None:
    world = told(bookings, broken)
    see(world, sightings)
    ratings = world.ratings()
    consumption = ratings.consumption(world.seq)
    lines = consumption.lines(consumption.last)
    states: defaultdict[tuple[str, int], int] = defaultdict(int)
    pools: defaultdict[int, int] = defaultdict(int)
    for row in consumption.usage:
        assert isinstance(row, UsageRow)
        states[row.state, row.hour] += row.gpu_microseconds
        pools[row.hour] += row.gpu_microseconds
    had = {row[1]: row[2] for row in map(tuple, consumption.capacity)}
    assert pools == had, "states sum to capacity"
    metered: defaultdict[tuple[str, int], int] = defaultdict(int)
    short = delivered = 0
    for line in lines:
        if line.meter in POSSESSED.values():
            metered[line.meter.value, line.start_ms * 1000] += line.gpu_microseconds
            delivered += line.gpu_microseconds
        elif line.meter is SkuMeter.SHORTAGE:
            short += line.gpu_microseconds
    wanted = {key: amount for key, amount in states.items() if key[0] in POSSESSED and amount}
    assert {key: amount for key, amount in metered.items() if amount} == wanted
    windows = [
        r.milli * max(0, r.end - r.start) // 1000
        for r in world.sequencer.ledger.reservations.values()
        if r.state.value in {"ended", "preempted"}
    ]
    assert delivered + short == sum(windows), "what was promised was delivered or credited"
    charged: defaultdict[str, int] = defaultdict(int)
    for name in "ab":
        for charge in world.rows(name):
            charged[charge["SkuId"] or ""] += int(charge["x_GpuMicroseconds"] or 0)
    assert sum(charged.values()) == sum(line.gpu_microseconds for line in lines)


@SLOW
@given(BOOKINGS, SIGHTINGS, SIGHTINGS, st.booleans())
def test_originals_and_corrections_are_a_recomputation(
    bookings: list[tuple[str, int, int, int, str, int]],
    late: list[tuple[int, int, int, int, bool]],
    later: list[tuple[int, int, int, int, bool]],
    cheaper: bool,
) -> None:
    world = told(bookings, None)
    for name in "ab":
        world.close_period(b.at(0), b.at(4), name)
        world.advance(b.at(21))
    see(world, late)
    for name in "ab":
        world.close_period(b.at(4), b.at(22), name)
    see(world, later)
    if cheaper:
        rates = (Rate(SkuMeter.RESERVED_USED, "1.111"),)
        world.accept(c.PublishPriceBook("standard", "EUR", b.at(-9000), rates, corrects=1))
    ratings = world.ratings()
    for name in "ab":
        fresh = ratings.head()
        found = list(invoices(TenantId(name), fresh, ratings.at))
        rows = [row for invoice in found for row in invoice.rows]
        lint([row for invoice in found for row in focus_rows(invoice)])
        ids = [row.id for row in rows]
        assert len(ids) == len(set(ids))
        sums: defaultdict[object, Decimal] = defaultdict(Decimal)
        amounts: defaultdict[object, int] = defaultdict(int)
        lines: defaultdict[tuple[object, ...], Decimal] = defaultdict(Decimal)
        coins: defaultdict[tuple[object, ...], Decimal] = defaultdict(Decimal)
        for row in rows:
            sums[row.charge.key] += row.contracted_cost
            amounts[row.charge.key] += row.gpu_microseconds
            lines[row.line] += row.contracted_cost
            coins[row.line] += row.billed
        mine = fresh.of(TenantId(name))
        assert {k: v for k, v in amounts.items() if v} == {
            k: charge.gpu_microseconds for k, charge in mine.items()
        }
        assert {k: v for k, v in sums.items() if amounts[k]} == {
            k: charge.contracted_cost for k, charge in mine.items()
        }
        assert coins == {line: to_coins(exact, "EUR") for line, exact in lines.items()}


@SLOW
@given(BOOKINGS)
def test_a_day_bills_what_its_hours_bill(
    bookings: list[tuple[str, int, int, int, str, int]],
) -> None:
    world = told(bookings, None)
    rows = [row for name in "ab" for row in world.rows(name)]
    days = list(by_day(rows))
    lint(days)
    for column in ("BilledCost", "ListCost", "ContractedCost", "EffectiveCost", "PricingQuantity"):
        total = sum((Decimal(row[column] or 0) for row in rows), Decimal(0))
        assert sum((Decimal(row[column] or 0) for row in days), Decimal(0)) == total


@given(st.lists(MONEY, min_size=1, max_size=30), st.integers(-3, 3))
def test_coins_are_shared_whole_and_close_to_what_is_exact(
    amounts: list[Decimal], off: int
) -> None:
    coin = Decimal("0.01")
    total = to_coins(sum(amounts, Decimal(0)), "EUR") + off * coin
    shares = share(amounts, total, coin)
    assert sum(shares, Decimal(0)) == total
    for amount, mine in zip(amounts, shares, strict=True):
        assert mine % coin == 0
        assert abs(mine - amount) <= coin * (1 + abs(off))
    assert shares == share(amounts, total, coin)


@given(st.integers(0, 10**15), st.integers(1, 50))
def test_a_split_is_exact_and_even(amount: int, parts: int) -> None:
    found = split(amount, parts)
    assert sum(found) == amount
    assert max(found) - min(found) <= 1
    assert found == sorted(found, reverse=True)


@given(st.integers(0, 10**16))
def test_hours_are_rounded_once_to_twelve_places(amount: int) -> None:
    exact = Decimal(amount) / Decimal(3_600_000_000)
    assert abs(hours(amount) - exact) <= Decimal("5e-13") + abs(exact) * Decimal("1e-27")


@given(st.decimals("0", "999999999", places=6), st.decimals("0", "100", places=4))
def test_a_discount_is_exact(price: Decimal, percent: Decimal) -> None:
    rate = Rate(SkuMeter.OVERFLOW, f"{price:f}", discount_percent=f"{percent:f}")
    assert contracted(rate) >= 0
    assert contracted(Rate(SkuMeter.OVERFLOW, f"{price:f}")) == price


@SLOW
@given(BOOKINGS, st.randoms(use_true_random=False))
def test_rating_in_parts_and_in_any_order_is_rating_the_whole(
    bookings: list[tuple[str, int, int, int, str, int]], random: Random
) -> None:
    world = told(bookings, None)
    consumption = world.ratings().consumption(world.seq)
    lines = consumption.lines(consumption.last)
    whole = rate(lines, consumption.terms)
    random.shuffle(lines)
    parts: dict[ChargeKey, Charge] = {}
    for reservation_id in {line.reservation_id for line in lines}:
        mine = [line for line in lines if line.reservation_id == reservation_id]
        parts |= rate(mine, consumption.terms)
    assert parts == whole
    period = Timespan(b.at(0), b.at(100))
    for account_id, charges in by_account(parts).items():
        assert originals(charges, period) == originals(by_account(whole)[account_id], period)

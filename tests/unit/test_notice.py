"""Terms by notice: how early something was booked, or let go of, has a price of its own."""

from decimal import Decimal

from domain import commands as c
from domain.ids import TenantId
from domain.pricing import Rate, SkuMeter
from domain.reservation import Reservation
from domain.sizes import Size
from tests import builders as b
from tests.billing import RATES, TERMS, BilledWorld, total

DAY = 86_400
PRICES = (*RATES, *TERMS)


def cancelled(world: BilledWorld, booked: Reservation) -> None:
    world.accept(c.CancelReservation(booked.id), principal=b.tenant("a"))


def told(world: BilledWorld, meter: str, name: str = "a") -> list[tuple[str | None, ...]]:
    """Start, quantity, price and cost of each row on a meter."""
    columns = ("ChargePeriodStart", "PricingQuantity", "ContractedUnitPrice", "BilledCost")
    return [
        tuple(row[column] for column in columns)
        for row in world.rows(name)
        if row["SkuMeter"] == meter
    ]


def test_what_was_booked_a_week_ahead_has_the_price_of_a_week_ahead() -> None:
    world = BilledWorld(rates=PRICES)
    early, late = (world.booked(b.book(gpus=4, start=h, end=h + 1)) for h in (168, 167))
    world.ran(late, b.at(167), b.at(168))
    world.ran(early, b.at(168), b.at(169))
    rows = told(world, "Reserved GPU Time")
    assert sorted(row[1:] for row in rows) == [("4", "1.5", "6"), ("4", "2", "8")]


def test_what_is_cancelled_late_is_charged_hour_by_hour_when_its_time_has_come() -> None:
    world = BilledWorld(rates=PRICES)
    booked = world.booked(b.book(gpus=8, start=10, end=12))
    world.advance(b.at(9))
    cancelled(world, booked)
    assert told(world, "Cancelled GPU Time") == [], "its time has not come"
    world.advance(b.at(11))
    world.accept(b.register("z"))
    assert told(world, "Cancelled GPU Time") == [("2026-01-01T10:00:00Z", "8", "2", "16")]
    world.advance(b.at(20))
    world.accept(b.register("y"))
    assert [row[1] for row in told(world, "Cancelled GPU Time")] == ["8", "8"]


def test_more_notice_costs_less_and_enough_of_it_nothing() -> None:
    world = BilledWorld(rates=PRICES)
    two, seven = (world.booked(b.book(gpus=1, start=h, end=h + 1)) for h in (48, 200))
    cancelled(world, two)
    cancelled(world, seven)
    world.advance(b.at(300))
    world.accept(b.register("z"))
    assert sorted(row[2:] for row in told(world, "Cancelled GPU Time")) == [("1", "1")]


def test_what_is_booked_anew_by_anybody_is_not_charged() -> None:
    world = BilledWorld(nodes=1, rates=PRICES)
    booked = world.booked(b.book(gpus=8, start=10, end=12))
    cancelled(world, booked)
    world.booked(b.book("b", gpus=6, start=10.5, end=11))
    world.advance(b.at(20))
    world.accept(b.register("z"))
    rows = told(world, "Cancelled GPU Time")
    assert sum(Decimal(row[1] or 0) for row in rows) == Decimal(16 - 3)


def test_a_hold_that_is_cancelled_or_resells_nothing_costs_nothing() -> None:
    world = BilledWorld(nodes=1, rates=PRICES)
    held = world.booked(b.book(gpus=8, start=10, end=12, hold_seconds=60))
    cancelled(world, held)
    booked = world.booked(b.book(gpus=8, start=10, end=12))
    cancelled(world, booked)
    world.booked(b.book("b", gpus=8, start=10, end=12, hold_seconds=60))
    world.advance(b.at(20))
    world.accept(b.register("z"))
    assert (
        total([r for r in world.rows() if "Cancelled" in (r["SkuMeter"] or "")], "BilledCost") == 32
    )


def test_what_is_shrunk_away_and_given_back_has_prices_of_its_own() -> None:
    world = BilledWorld(rates=PRICES)
    booked = world.booked(b.book(gpus=8, start=1, end=3))
    world.accept(c.ShrinkReservation(booked.id, Size(6)))
    world.applied(booked, b.at(1))
    world.advance(b.at(2))
    world.accept(c.GiveBack(booked.id))
    world.freed(booked, b.at(2, seconds=1))
    world.advance(b.at(5))
    world.accept(b.register("z"))
    assert [row[1:] for row in told(world, "Shrunk GPU Time")] == [("2", "1.5", "3")] * 2
    assert told(world, "Given Back GPU Time") == [("2026-01-01T02:00:00Z", "6", "0.5", "3")]
    assert total(world.rows(), "PricingQuantity") == Decimal(4 + 6 + 6)


def test_who_has_to_give_way_is_credited_for_the_rest() -> None:
    world = BilledWorld(nodes=1, rates=PRICES)
    world.accept(b.grant("b", gpus=0, borrow=8))
    victim = world.booked(b.book("b", gpus=8, start=1, end=3, klass="borrowed"))
    world.booked(b.book("a", gpus=8, start=2, end=3))
    assert world.reservation(victim).order_id is not None
    world.advance(b.at(5))
    world.accept(b.register("z"))
    rows = [row for row in world.rows("b") if row["SkuMeter"] == "Preempted GPU Time"]
    assert {row["ChargeCategory"] for row in rows} == {"Credit"}
    assert total(rows, "BilledCost") == Decimal(-24)


def test_rates_by_notice_are_checked() -> None:
    world = BilledWorld()
    for rates in (
        (Rate(SkuMeter.CANCELLED, "1", "", "0", -1),),
        (Rate(SkuMeter.CANCELLED, "1", "", "0", 400 * DAY),),
        (Rate(SkuMeter.CANCELLED, "1", "", "0", 60), Rate(SkuMeter.CANCELLED, "2", "", "0", 60)),
        (Rate(SkuMeter.BORROWED, "1"), Rate(SkuMeter.LENT, "1", "", "0", 60)),
        (
            Rate(SkuMeter.BORROWED, "2"),
            Rate(SkuMeter.BORROWED, "0.5", "", "0", DAY),
            Rate(SkuMeter.LENT, "1"),
        ),
    ):
        book = c.PublishPriceBook("x", "EUR", b.at(0), rates, tenant_ids=(TenantId("a"),))
        assert world.refused(book) == "malformed", rates

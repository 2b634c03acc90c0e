"""A quote is named at booking, stored with it, and honoured though prices change later."""

from domain import commands as c
from domain.facts.reservation import ReservationConfirmed
from domain.ids import TenantId
from domain.pricing import Rate, SkuMeter
from domain.reservation import Reservation
from domain.timespan import Instant
from tests import builders as b
from tests.billing import BilledWorld

USED = SkuMeter.RESERVED_USED


def publish(
    world: BilledWorld, price: str, start: float, book: str = "standard", **more: object
) -> None:
    rates = (Rate(USED, price),)
    world.accept(c.PublishPriceBook(book, "EUR", b.at(start), rates, **more))  # type: ignore[arg-type]


def quote_of(world: BilledWorld, booked: Reservation) -> str:
    facts = [recorded.fact for recorded in world.log()]
    return next(
        fact.quote
        for fact in facts
        if isinstance(fact, ReservationConfirmed) and fact.reservation_id == booked.id
    )


def prices(world: BilledWorld, booked: Reservation, at: Instant, end: Instant) -> list[str | None]:
    world.ran(booked, at, end)
    rows = [row for row in world.rows() if row["ResourceId"] == booked.id]
    assert world.ratings().head().terms.books
    return [row["ContractedUnitPrice"] for row in rows]


def test_a_booking_keeps_the_price_that_it_was_quoted() -> None:
    world = BilledWorld()
    before = world.booked(b.book(gpus=4, start=1, end=2))
    publish(world, "9", 0.5)
    after = world.booked(b.book(gpus=4, start=1, end=2))
    assert (quote_of(world, before), quote_of(world, after)) == ("standard:1", "standard:2")
    world.applied(before, b.at(1))
    world.applied(after, b.at(1))
    world.freed(before, b.at(2))
    world.freed(after, b.at(2, seconds=1))
    told = {row["ResourceId"]: row["ContractedUnitPrice"] for row in world.rows()}
    assert told == {before.id: "2", after.id: "9"}


def test_a_change_that_was_known_at_booking_is_part_of_the_quote() -> None:
    world = BilledWorld()
    publish(world, "9", 2)
    booked = world.booked(b.book(gpus=4, start=1, end=3))
    publish(world, "20", 2.5)
    assert prices(world, booked, b.at(1), b.at(3)) == ["2", "9"]


def test_a_corrected_price_corrects_its_quotes() -> None:
    world = BilledWorld()
    booked = world.booked(b.book(gpus=4, start=1, end=2))
    world.accept(c.PublishPriceBook("standard", "EUR", b.at(-9000), (Rate(USED, "1"),), corrects=1))
    world.accept(
        c.PublishPriceBook("standard", "EUR", b.at(-9000), (Rate(USED, "1.5"),), corrects=2)
    )
    assert prices(world, booked, b.at(1), b.at(2)) == ["1.5"]


def test_what_comes_after_the_window_that_was_booked_is_not_quoted() -> None:
    world = BilledWorld()
    booked = world.booked(b.book(gpus=4, start=1, end=2))
    publish(world, "9", 0.5)
    world.accept(c.ExtendReservation(booked.id, b.at(3)))
    assert prices(world, booked, b.at(1), b.at(3)) == ["2", "9"]


def test_the_nearest_book_is_the_one_that_is_quoted() -> None:
    world = BilledWorld()
    publish(world, "7", -1, "of-a", tenant_ids=(TenantId("a"),), end=b.at(1.5))
    booked = world.booked(b.book(gpus=4, start=1, end=2))
    assert quote_of(world, booked) == "of-a:1"
    assert sorted(map(str, prices(world, booked, b.at(1), b.at(2)))) == ["2", "7"]
    ends = {row["ChargePeriodEnd"] for row in world.rows() if row["ContractedUnitPrice"] == "7"}
    starts = {row["ChargePeriodStart"] for row in world.rows() if row["ContractedUnitPrice"] == "2"}
    assert ends == starts == {"2026-01-01T01:30:00Z"}


def test_without_a_book_there_is_no_quote_and_later_books_hold() -> None:
    world = BilledWorld(start_book=False)
    booked = world.booked(b.book(gpus=4, start=1, end=2))
    publish(world, "5", 0)
    assert quote_of(world, booked) == ""
    assert prices(world, booked, b.at(1), b.at(2)) == ["5"]


def test_a_restored_ledger_quotes_as_the_one_before() -> None:
    world = BilledWorld()
    publish(world, "9", 3)
    world.restart()
    booked = world.booked(b.book(gpus=4, start=1, end=2))
    assert quote_of(world, booked) == "standard:2"
    world.check()

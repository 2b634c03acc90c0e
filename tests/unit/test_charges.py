"""Charges as stories: what a reservation costs, to whom, in which period, and how it is corrected."""

from decimal import Decimal
from itertools import pairwise

import pytest

from domain import commands as c
from domain.commands.node import Health
from domain.facts.hardware import ReportStamp
from domain.ids import NodeId, ReservationId, TenantId
from domain.pricing import Rate, SkuMeter, UnusedSplit
from domain.submission import OutcomeKind
from domain.units import Piece
from projections.closing import MixedCurrencies, billed
from projections.focus import by_day, focus_rows
from tests import builders as b
from tests.billing import BilledWorld, lint, total

MONTH = (b.at(0), b.at(31 * 24))


def test_the_worked_hour_of_the_documentation() -> None:
    world = BilledWorld()
    booked = world.booked(b.book(gpus=8, start=1, end=2))
    world.applied(booked, b.at(1))
    (piece,) = world.pieces(booked, b.at(1))[NodeId("n1")]
    idle = (Piece(piece.node_id, 6000, 2000),)
    world.advance(b.at(2))
    world.observed(booked, idle, b.at(1), b.at(2), occupied=False)
    world.freed(booked, b.at(2))
    used, unused = sorted(world.rows(), key=lambda row: row["SkuId"] or "", reverse=True)
    assert used["CapacityReservationStatus"] == "Used"
    assert unused["CapacityReservationStatus"] == "Unused"
    told = [
        tuple(row[name] for name in ("PricingQuantity", "ListCost", "ContractedCost", "BilledCost"))
        for row in (used, unused)
    ]
    assert told == [("6", "15", "12", "12"), ("2", "5", "4", "4")]
    assert used["ContractedUnitPrice"] == "2"
    assert used["CapacityReservationId"] == booked.id
    assert used["ChargePeriodStart"] == "2026-01-01T01:00:00Z"
    assert used["x_ActivityUnknown"] == "false"


def test_m1_a_second_run_of_the_same_log_has_the_same_rows() -> None:
    world = BilledWorld()
    world.ran(world.booked(b.book(gpus=4, start=1, end=3.5)), b.at(1), b.at(3.5))
    week = c.ClosePeriod(TenantId("a"), b.at(-49), b.at(119), "Europe/Paris")
    world.advance(b.at(20))
    first = world.rows()
    world.advance(b.at(23))
    assert world.rows() == first
    assert len({row["x_ChargeRecordId"] for row in first}) == len(first) == 3
    world.advance(b.at(119))
    world.accept(week)
    closing = world.invoices()[0]
    assert closing.period.zone == "Europe/Paris"
    ids = {row["x_ChargeRecordId"] for row in focus_rows(closing)}
    assert ids == {row["x_ChargeRecordId"] for row in first}


def test_m2_a_night_of_25_hours_bills_the_hours_that_there_were() -> None:
    world = BilledWorld()
    october = b.at(297 * 24)
    world.now = october
    world.ran(
        world.booked(b.book(gpus=1, start=297 * 24, end=297 * 24 + 4)),
        october,
        b.at(297 * 24 + 4),
    )
    rows = world.rows()
    assert rows[0]["ChargePeriodStart"] == "2026-10-25T00:00:00Z"
    assert total(rows, "PricingQuantity") == Decimal(4)
    day = (b.at(297 * 24 - 2), b.at(297 * 24 + 23))
    world.advance(day[1])
    world.accept(c.ClosePeriod(TenantId("a"), *day, "Europe/Paris"))
    assert total(list(focus_rows(world.invoices()[0])), "PricingQuantity") == Decimal(4)


def test_m3_what_is_less_than_a_coin_is_not_lost_by_the_row() -> None:
    price = Rate(SkuMeter.RESERVED_USED, "0.0768")
    world = BilledWorld(rates=(price,))
    for minute in range(60):
        start, end = 1 + minute / 60, 1 + (minute + 1) / 60
        booked = world.booked(b.book(gpus=1, start=start, end=end))
        world.ran(booked, b.at(start), b.at(end))
    rows = world.rows()
    assert len(rows) == 60
    assert abs(total(rows, "ContractedCost") - Decimal("0.0768")) < Decimal("1e-10")
    assert total(rows, "BilledCost") == Decimal("0.08")
    assert {row["BilledCost"] for row in rows} == {"0", "0.01"}


def test_m4_a_fact_that_comes_after_the_close_corrects_in_the_next_period() -> None:
    world = BilledWorld()
    hours = 31 * 24
    booked = world.booked(b.book(gpus=6, start=hours - 1, end=hours))
    (holding,) = booked.holdings
    world.ran(booked, b.at(hours - 1), b.at(hours))
    closed = world.close_period(*MONTH)
    before = list(focus_rows(closed))
    world.advance(b.at(hours + 72))
    one = (Piece(holding.piece.node_id, holding.piece.first_milli, 1000),)
    late = world.observed(booked, one, b.at(hours - 1), b.at(hours), occupied=False)
    assert late.kind is OutcomeKind.ACCEPTED
    january, february = world.invoices()
    assert list(focus_rows(january)) == before, "what is closed is untouched"
    rows = list(focus_rows(february))
    assert {row["ChargeClass"] for row in rows} == {"Correction"}
    assert {row["ChargePeriodStart"] for row in rows} == {before[0]["ChargePeriodStart"]}
    assert {row["BillingPeriodStart"] for row in rows} == {"2026-02-01T00:00:00Z"}
    told = sorted((row["PricingQuantity"], row["CapacityReservationStatus"]) for row in rows)
    assert told == [("-6", "Used"), ("1", "Unused"), ("5", "Used")]
    assert {row["x_RestatementOf"] for row in rows} >= {before[0]["x_ChargeRecordId"]}
    assert total([*before, *rows], "ContractedCost") == Decimal(12)


def test_m5_what_nobody_used_of_a_shared_reservation_is_split_among_its_members() -> None:
    world = BilledWorld(nodes=4, unused_split=UnusedSplit.MEMBERS)
    for name in ("x", "y", "z"):
        world.accept(b.register(name, "a"))
    twelve = [world.booked(b.book(gpus=12, start=1, end=2)) for _ in range(2)]
    for booked in (*twelve, world.booked(b.book(gpus=7, start=3, end=4))):
        world.applied(booked, booked.start)
        for pieces in world.pieces(booked, booked.start).values():
            world.observed(booked, pieces, booked.start, booked.end, occupied=False)
    world.advance(b.at(4))
    rows = world.rows()
    first = [row for row in rows if row["ChargePeriodStart"] == "2026-01-01T01:00:00Z"]
    assert sorted(row["SubAccountId"] or "" for row in first) == ["x", "x", "y", "y", "z", "z"]
    assert {row["PricingQuantity"] for row in first} == {"4"}
    assert {row["AllocatedMethodId"] for row in first} == {"equal-parts-of-members"}
    seven = [row for row in rows if row not in first]
    assert sum(int(row["x_GpuMicroseconds"] or 0) for row in seven) == 7 * 3_600_000_000


def test_m6_half_of_what_was_promised_is_billed_as_half_and_the_rest_is_credited() -> None:
    world = BilledWorld(nodes=1)
    booked = world.booked(b.book(gpus=8, start=1, end=3))
    world.applied(booked, b.at(1))
    world.advance(b.at(2))
    world.accept(c.ReportHealth(b.POOL, Health.FAILED, "ecc", NodeId("n1"), (4, 5, 6, 7)))
    assert {row["ChargeCategory"] for row in world.rows()} == {"Usage"}, "nothing was missing yet"
    world.freed(booked, b.at(3))
    used = [row for row in world.rows() if row["ChargeCategory"] == "Usage"]
    credited = [row for row in world.rows() if row["ChargeCategory"] == "Credit"]
    assert total(used, "PricingQuantity") == Decimal(12)
    assert total(credited, "PricingQuantity") == Decimal(-4)
    assert total(credited, "BilledCost") == Decimal(-8)


def test_m7_twice_conflicting_late_and_unknown_make_one_charge_each_or_none() -> None:
    world = BilledWorld()
    booked = world.booked(b.book(gpus=8, start=1, end=2))
    (holding,) = booked.holdings
    world.ran(booked, b.at(1), b.at(2))
    stamp = ReportStamp("meter", "m", 1)
    half = (Piece(holding.piece.node_id, holding.piece.first_milli, 4000),)
    span = (b.at(1), b.at(2))
    world.observed(booked, half, *span, occupied=False, stamp=stamp)
    once = world.rows()
    world.observed(booked, half, *span, occupied=False, stamp=stamp)
    more = (Piece(holding.piece.node_id, holding.piece.first_milli, 5000),)
    world.observed(booked, more, *span, occupied=False, stamp=stamp)
    assert world.rows() == once
    stranger = c.ReportActivity(
        NodeId("n1"), ReservationId("f" * 32), half, *span, True, True, world.stamp()
    )
    assert world.refused(stranger, principal=b.SERVICE) == "not-found"
    world.close_period(*MONTH)
    world.advance(b.at(34 * 24))
    world.observed(booked, more, *span, occupied=False)
    rows = list(focus_rows(world.invoices()[-1]))
    assert {row["x_RestatementOf"] for row in rows} == {row["x_ChargeRecordId"] for row in once}
    assert total(rows, "PricingQuantity") == 0


def test_a_booking_without_a_price_book_costs_nothing_and_has_no_row() -> None:
    world = BilledWorld()
    world.accept(b.register("c"))
    world.accept(b.grant("c"))
    other = c.PublishPriceBook(
        "of-c", "EUR", b.at(-9000), (Rate(SkuMeter.OVERFLOW, "1"),), tenant_ids=(TenantId("c"),)
    )
    world.accept(other)
    world.ran(world.booked(b.book("c", start=1, end=2)), b.at(1), b.at(2))
    (row,) = world.rows("c")
    assert row["BilledCost"] == "0", "its own book has no rate for it: it is free"


def test_what_overstays_is_overrun_and_our_own_cleaning_is_not() -> None:
    world = BilledWorld()
    booked = world.booked(b.book(gpus=8, start=1, end=2))
    world.applied(booked, b.at(1))
    pieces = tuple(world.pieces(booked, b.at(1))[NodeId("n1")])
    world.advance(b.at(2))
    world.observed(booked, pieces, b.at(1.5), b.at(2, seconds=30), occupied=True)
    world.freed(booked, b.at(2, seconds=50))
    overrun = [row for row in world.rows() if row["SkuMeter"] == "Overrun GPU Time"]
    assert [row["x_GpuMicroseconds"] for row in overrun] == [str(8 * 30 * 1_000_000)]
    assert total(world.rows(), "PricingQuantity") > Decimal(8)


def test_a_price_that_changes_inside_an_hour_splits_it() -> None:
    world = BilledWorld()
    world.accept(
        c.PublishPriceBook("standard", "EUR", b.at(1.25), (Rate(SkuMeter.RESERVED_USED, "4"),))
    )
    world.ran(world.booked(b.book(gpus=1, start=1, end=2)), b.at(1), b.at(2))
    told = [
        (row["ChargePeriodEnd"], row["PricingQuantity"], row["ListCost"]) for row in world.rows()
    ]
    assert told == [
        ("2026-01-01T01:15:00Z", "0.25", "0.625"),
        ("2026-01-01T02:00:00Z", "0.75", "3"),
    ]


def test_a_period_that_cuts_an_hour_cuts_its_rows() -> None:
    world = BilledWorld()
    world.ran(world.booked(b.book(gpus=1, start=18, end=19)), b.at(18), b.at(19))
    world.advance(b.at(20))
    day = c.ClosePeriod(TenantId("a"), b.at(-5.5), b.at(18.5), "Asia/Kolkata")
    world.accept(day)
    kolkata, rest = world.invoices()
    (first,), (second,) = focus_rows(kolkata), focus_rows(rest)
    assert first["ChargePeriodEnd"] == "2026-01-01T18:30:00Z" == second["ChargePeriodStart"]
    assert first["PricingQuantity"] == second["PricingQuantity"] == "0.5"


def test_a_corrected_price_is_charged_anew() -> None:
    world = BilledWorld()
    world.ran(world.booked(b.book(gpus=8, start=1, end=2)), b.at(1), b.at(2))
    world.close_period(*MONTH)
    world.accept(
        c.PublishPriceBook(
            "standard", "EUR", b.at(-9000), (Rate(SkuMeter.RESERVED_USED, "1"),), corrects=1
        )
    )
    january, february = world.invoices()
    rows = list(focus_rows(february))
    assert [row["BilledCost"] for row in rows] == ["-16", "8"] or [
        row["BilledCost"] for row in rows
    ] == ["8", "-16"]
    assert billed(january)[0] == Decimal(16)


def test_an_invoice_has_one_currency() -> None:
    world = BilledWorld()
    world.accept(
        c.PublishPriceBook("standard", "USD", b.at(2), (Rate(SkuMeter.RESERVED_USED, "1"),))
    )
    world.ran(world.booked(b.book(gpus=8, start=1, end=3)), b.at(1), b.at(3))
    (invoice,) = world.invoices()
    with pytest.raises(MixedCurrencies):
        billed(invoice)


def test_a_day_is_the_sum_of_its_hours() -> None:
    world = BilledWorld()
    world.ran(world.booked(b.book(gpus=3, start=1, end=30)), b.at(1), b.at(30))
    hours = world.rows()
    days = list(by_day(hours))
    lint(days)
    assert [row["ChargePeriodStart"] for row in days] == [
        "2026-01-01T01:00:00Z",
        "2026-01-02T00:00:00Z",
    ]
    for column in ("BilledCost", "ContractedCost", "PricingQuantity", "ListCost"):
        assert total(days, column) == total(hours, column)


def test_overflow_has_no_reservation_and_its_own_price() -> None:
    world = BilledWorld()
    world.accept(b.register("d"))
    world.accept(b.grant("d", gpus=1))
    world.accept(b.register("e", "d"))
    from domain.consent import OverflowMode

    world.accept(c.ConsentOverflow(TenantId("d"), b.POOL, OverflowMode.AUTO, 8000))
    booked = world.booked(b.book("d", gpus=4, start=1, end=2, overflow=True))
    world.ran(booked, b.at(1), b.at(2))
    (row,) = world.rows("d")
    assert row["SkuMeter"] == "Overflow GPU Time"
    assert row["CapacityReservationId"] is None
    assert (row["PricingCategory"], row["ListCost"]) == ("Dynamic", "12.4")


def test_hours_follow_each_other_without_a_gap() -> None:
    world = BilledWorld()
    world.ran(world.booked(b.book(gpus=1, start=1.1, end=4.7)), b.at(1.1), b.at(4.7))
    rows = world.rows()
    for one, two in pairwise(rows):
        assert one["ChargePeriodEnd"] == two["ChargePeriodStart"]
    assert total(rows, "PricingQuantity") == Decimal("3.6")


def test_open_months_bill_each_hour_in_one_of_them() -> None:
    world = BilledWorld()
    world.ran(world.booked(b.book(gpus=1, start=1, end=2)), b.at(1), b.at(2))
    later = 40 * 24
    world.ran(
        world.booked(b.book(gpus=1, start=later, end=later + 1)), b.at(later), b.at(later + 1)
    )
    january, february = world.invoices()
    assert [len(january.rows), len(february.rows)] == [1, 1]

"""Lending: whose idle quota others borrowed is credited, and never for more than they pay."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import commands as c
from domain.ids import GrantId, TenantId
from domain.pricing import Rate, SkuMeter
from projections.focus import Row, by_day
from projections.lending import shares
from projections.reconciling import reconcile
from tests import builders as b
from tests.billing import BilledWorld, lint, total

RATES = (
    Rate(SkuMeter.RESERVED_USED, "2.5"),
    Rate(SkuMeter.BORROWED, "1.2"),
    Rate(SkuMeter.LENT, "0.8"),
)
HOUR = 3_600_000_000


def lend(name: str, gpus: int, lends: int) -> c.GrantQuota:
    return c.GrantQuota(TenantId(name), b.POOL, gpus * 1000, 0, lends * 1000)


class Lenders(BilledWorld):
    """Tenants c and d who lend, and a, who has quota of its own and borrows."""

    def __init__(self, c_lends: int = 4, d_lends: int = 8) -> None:
        super().__init__(nodes=3, rates=RATES)
        for name, lends in (("c", c_lends), ("d", d_lends)):
            self.accept(b.register(name))
            self.accept(lend(name, 8, lends))

    def borrow(self, gpus: int, start: float = 1, end: float = 2) -> None:
        booked = self.booked(b.book(gpus=gpus, start=start, end=end, klass="borrowed"))
        self.ran(booked, b.at(start), b.at(end))

    def credits(self, name: str) -> list[Row]:
        return [row for row in self.rows(name) if row["SkuMeter"] == "Lent GPU Time"]

    def lent(self, name: str) -> int:
        return sum(int(row["x_GpuMicroseconds"] or 0) for row in self.credits(name))


def test_what_was_borrowed_is_credited_to_those_whose_quota_was_idle() -> None:
    world = Lenders()
    holds = world.booked(b.book("d", gpus=4, start=1, end=2))
    booked = world.booked(b.book(gpus=6, start=1, end=2, klass="borrowed", tags={"secret": "x"}))
    world.applied(holds, b.at(1))
    world.ran(booked, b.at(1), b.at(2))
    world.freed(holds, b.at(2))
    assert (world.lent("c"), world.lent("d")) == (3 * HOUR, 3 * HOUR), "four were idle with each"
    (row,) = world.credits("c")
    assert (row["ChargeCategory"], row["BilledCost"], row["PricingQuantity"]) == (
        "Credit",
        "-2.4",
        "-3",
    )
    hidden = ("ResourceId", "ResourceName", "Tags", "x_LedgerSeqFrom", "x_ActivityUnknown")
    assert [row[name] for name in hidden] == [None] * 5, "whose work it was is nobody's business"
    borrowed = [r for r in world.rows("a") if r["SkuMeter"] == "Borrowed GPU Time"]
    credited = total(world.credits("c"), "BilledCost") + total(world.credits("d"), "BilledCost")
    assert total(borrowed, "BilledCost") + credited > 0
    assert reconcile(world.ratings()).differences == []


def test_a_lending_limit_and_the_quota_that_is_in_use_bound_what_is_credited() -> None:
    world = Lenders(c_lends=1, d_lends=0)
    world.borrow(6)
    assert (world.lent("c"), world.lent("d")) == (HOUR, 0)


def test_what_does_not_divide_is_fixed_by_remainder_and_name() -> None:
    world = Lenders(c_lends=3, d_lends=3)
    world.borrow(1, start=1, end=1 + 1 / 3_600)
    assert (world.lent("c"), world.lent("d")) == (500_000, 500_000)
    assert shares(7, {TenantId("y"): 3, TenantId("x"): 3}) == {"y": 3, "x": 4}


def test_a_grant_that_is_amended_counts_for_the_time_before_and_after() -> None:
    world = Lenders(c_lends=8, d_lends=0)
    booked = world.booked(b.book(gpus=8, start=1, end=2, klass="borrowed"))
    world.applied(booked, b.at(1))
    world.advance(b.at(1.5))
    (grant,) = [
        grant
        for grant, (tenant, _) in world.sequencer.ledger.grants.items()
        if tenant == TenantId("c")
    ]
    world.accept(c.AmendQuota(GrantId(grant), 8000, 0, 0))
    world.freed(booked, b.at(2))
    assert world.lent("c") == 4 * HOUR


def test_who_borrows_lends_nothing_nor_does_who_it_lies_in() -> None:
    world = Lenders(d_lends=0)
    world.accept(b.register("team", "c"))
    world.accept(c.GrantQuota(TenantId("team"), b.POOL, 0, 8000, 0))
    booked = world.booked(b.book("team", gpus=2, start=1, end=2, klass="borrowed"))
    world.ran(booked, b.at(1), b.at(2))
    assert world.lent("c") == 0


def test_lent_hours_sum_to_days_and_pass_the_linter() -> None:
    world = Lenders()
    world.borrow(2, start=1, end=5)
    days = list(by_day(world.credits("c")))
    lint(days)
    assert [row["x_LedgerSeqFrom"] for row in days] == [None]
    assert total(days, "PricingQuantity") == total(world.credits("c"), "PricingQuantity")


def test_without_a_rate_for_it_nothing_is_credited() -> None:
    world = BilledWorld(nodes=3)
    world.accept(b.register("c"))
    world.accept(lend("c", 8, 8))
    world.ran(world.booked(b.book(gpus=2, start=1, end=2, klass="borrowed")), b.at(1), b.at(2))
    assert world.rows("c") == []


def book(name: str, *rates: Rate, **more: Any) -> c.PublishPriceBook:
    return c.PublishPriceBook(name, more.pop("currency", "EUR"), b.at(-9000), rates, **more)


@pytest.mark.parametrize(
    "wrong",
    [
        book("x", Rate(SkuMeter.LENT, "1.3"), tenant_ids=(TenantId("c"),)),
        book("x", Rate(SkuMeter.LENT, "1"), currency="USD", tenant_ids=(TenantId("c"),)),
        book("x", Rate(SkuMeter.BORROWED, "0.5"), tenant_ids=(TenantId("c"),)),
        book("x", Rate(SkuMeter.RESERVED_USED, "1"), tenant_ids=(TenantId("c"),)),
        book(
            "standard", Rate(SkuMeter.BORROWED, "1", "H100"), Rate(SkuMeter.LENT, "1"), corrects=1
        ),
    ],
    ids=["above", "currency", "borrows-for-less", "borrows-for-nothing", "another-model"],
)
def test_a_lender_is_never_paid_more_than_a_borrower_pays(wrong: c.PublishPriceBook) -> None:
    world = Lenders()
    before = dict(world.sequencer.ledger.price_books)
    assert world.refused(wrong) == "malformed"
    assert world.sequencer.ledger.price_books == before
    world.check()


@given(st.dictionaries(st.sampled_from("abcdefg").map(TenantId), st.integers(1, 10**13)), st.data())
def test_shares_are_exact_and_within_their_weights(
    weights: dict[TenantId, int], data: st.DataObject
) -> None:
    amount = data.draw(st.integers(0, sum(weights.values())))
    found = shares(amount, weights)
    assert sum(found.values()) == amount
    assert all(0 <= part <= weights[name] for name, part in found.items())

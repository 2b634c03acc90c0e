"""Price books and periods: what is refused, what holds when, and that nothing is forgotten."""

from decimal import Decimal
from typing import Any

import pytest

from domain import commands as c
from domain.currency import smallest
from domain.ids import TenantId
from domain.periods import PeriodState
from domain.pricing import Rate, SkuMeter, contracted, in_force
from domain.timespan import Instant
from schemas.image import image_of, ledger_from
from tests import builders as b
from tests.world import World

USED = Rate(SkuMeter.RESERVED_USED, "2.50", "H100", "20")
MONTH = (b.at(0), b.at(31 * 24))


def publish(name: str = "standard", **how: Any) -> c.PublishPriceBook:
    values: dict[str, Any] = {"currency": "EUR", "start": b.at(0), "rates": (USED,)} | how
    return c.PublishPriceBook(name, **values)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"currency": "EURO"}, "malformed"),
        ({"currency": "eur"}, "malformed"),
        ({"tenant_ids": (TenantId("nobody"),)}, "not-found"),
        ({"tenant_ids": (TenantId("a"), TenantId("a"))}, "malformed"),
        ({"rates": ()}, "malformed"),
        ({"rates": (Rate(SkuMeter.OVERFLOW, "-1"),)}, "malformed"),
        ({"rates": (Rate(SkuMeter.OVERFLOW, "1e3"),)}, "malformed"),
        ({"rates": (Rate(SkuMeter.OVERFLOW, "NaN"),)}, "malformed"),
        ({"rates": (Rate(SkuMeter.OVERFLOW, "\u0661"),)}, "malformed"),
        ({"rates": (Rate(SkuMeter.OVERFLOW, "0.1234567890123"),)}, "malformed"),
        ({"rates": (Rate(SkuMeter.OVERFLOW, "1", discount_percent="101"),)}, "malformed"),
        ({"rates": (USED, USED)}, "malformed"),
        ({"rates": (USED,) * 201}, "malformed"),
        ({"rates": tuple(Rate(SkuMeter.OVERRUN, "1", f"m{n}") for n in range(201))}, "limit"),
        ({"end": b.at(0)}, "window-invalid"),
        ({"start": Instant(b.T0 + 1)}, "window-invalid"),
        ({"corrects": 1}, "not-found"),
        ({"book_id": "no good"}, "malformed"),
    ],
    ids=str,
)
def test_a_price_book_that_makes_no_sense_is_refused(how: dict[str, Any], reason: str) -> None:
    world = World(nodes=1)
    command = publish(how.pop("book_id", "standard"), **how)
    assert world.refused(command) == reason
    assert world.sequencer.ledger.price_books == {}


def test_two_versions_never_hold_at_one_instant() -> None:
    world = World(nodes=1)
    world.accept(publish(end=b.at(10)))
    assert world.refused(publish(start=b.at(9))) == "wrong-state"
    assert world.refused(publish("other", start=b.at(9))) == "wrong-state"
    world.accept(publish("other", start=b.at(9), tenant_ids=(TenantId("a"),)))
    world.accept(publish(start=b.at(10)))
    world.check()


def test_a_later_version_ends_an_open_one() -> None:
    world = World(nodes=1)
    world.accept(publish())
    assert world.refused(publish()) == "wrong-state"
    world.accept(publish(start=b.at(10)))
    spans = [(v.start, v.end) for v in in_force(world.sequencer.ledger.price_books["standard"])]
    assert spans[0] == (b.at(0), b.at(10))
    assert spans[1][0] == b.at(10)
    world.check()


def test_a_correction_takes_the_place_of_a_version() -> None:
    world = World(nodes=1)
    world.accept(publish(end=b.at(10)))
    world.accept(publish(end=b.at(10), rates=(Rate(SkuMeter.OVERFLOW, "3.1"),), corrects=1))
    assert [v.version for v in in_force(world.sequencer.ledger.price_books["standard"])] == [2]
    assert world.refused(publish(end=b.at(10), corrects=1)) == "not-found"
    world.check()


def test_the_rate_of_a_model_comes_before_that_of_any() -> None:
    world = World(nodes=1)
    any_model = Rate(SkuMeter.RESERVED_USED, "1")
    world.accept(publish(rates=(USED, any_model)))
    (version,) = world.sequencer.ledger.price_books["standard"]
    assert version.rate_of(SkuMeter.RESERVED_USED, "H100") == USED
    assert version.rate_of(SkuMeter.RESERVED_USED, "A100") == any_model
    assert version.rate_of(SkuMeter.OVERFLOW, "H100") is None
    assert contracted(USED) == Decimal("2.00")


def test_a_tenant_may_not_set_prices_and_finance_may() -> None:
    world = World(nodes=1)
    assert world.refused(publish(), principal=b.tenant("a")) == "forbidden"
    world.accept(publish(), principal=b.FINANCE)


def test_a_coin_has_the_digits_of_its_currency() -> None:
    assert [smallest(code) for code in ("EUR", "JPY", "KWD")] == [
        Decimal("0.01"),
        Decimal(1),
        Decimal("0.001"),
    ]


def seal(name: str = "a", start: Instant = MONTH[0], **how: Any) -> c.SealPeriod:
    values: dict[str, Any] = {
        "cutoff_seq": 9,
        "rating_version": "1",
        "rows": 3,
        "row_root": bytes(32),
        "billed": "12.34",
        "currency": "EUR",
    }
    return c.SealPeriod(TenantId(name), start, **values | how)


def close(name: str = "a", start: Instant = MONTH[0], end: Instant = MONTH[1]) -> c.ClosePeriod:
    return c.ClosePeriod(TenantId(name), start, end, "Europe/Berlin")


def test_a_period_closes_once_and_the_next_begins_at_its_end() -> None:
    world = World(nodes=1)
    assert world.refused(close()) == "window-invalid", "it has not ended"
    world.advance(b.at(62 * 24))
    world.accept(close())
    assert world.refused(close()) == "wrong-state"
    later = (b.at(40 * 24), b.at(50 * 24))
    assert world.refused(close("a", *later)) == "wrong-state", "the one before is still closing"
    world.accept(seal())
    assert world.refused(seal()) == "wrong-state", "a second seal"
    assert world.refused(close("a", *later)) == "window-invalid", "a day would belong to no period"
    world.accept(close("a", b.at(31 * 24), b.at(59 * 24)))
    ledger = world.sequencer.ledger
    states = [p.state for p in ledger.periods[TenantId("a")]]
    assert states == [PeriodState.CLOSED, PeriodState.CLOSING]
    world.accept(publish(tenant_ids=(TenantId("a"),)))
    image = image_of(ledger)
    assert image_of(ledger_from(image)) == image
    world.check()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (close("nobody"), "not-found"),
        (close("child"), "malformed"),
        (c.ClosePeriod(TenantId("a"), *MONTH, zone="no zone"), "malformed"),
        (close("a", b.at(0), b.at(9000)), "limit"),
        (seal("b"), "not-found"),
        (seal("a", row_root=b"short"), "malformed"),
        (seal("a", billed="twelve"), "malformed"),
        (seal("a", rows=-1), "malformed"),
        (seal("a", cutoff_seq=0), "malformed"),
        (seal("a", currency="???"), "malformed"),
    ],
    ids=str,
)
def test_a_close_that_makes_no_sense_is_refused(command: Any, reason: str) -> None:
    world = World(nodes=1)
    world.accept(b.register("child", "a"))
    world.advance(b.at(9_000))
    world.accept(close())
    before = world.sequencer.ledger.periods
    assert world.refused(command) == reason
    assert world.sequencer.ledger.periods == before
    world.check()

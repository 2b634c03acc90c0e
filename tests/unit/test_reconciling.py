"""What reconciling finds: every change of a row, a book without a price, a seal that is another."""

from pathlib import Path
from typing import Any

import pytest

from connectors.exports.charges import WRITERS, read_file
from connectors.exports.statement import statement
from domain import commands as c
from domain.ids import TenantId
from domain.pricing import Rate, SkuMeter
from projections.closing import billed, seal_of
from projections.focus import COLUMNS, PERIOD_COLUMNS, by_day, period_row
from projections.reconciling import reconcile
from tests import builders as b
from tests.billing import BilledWorld, lint


def busy() -> BilledWorld:
    """Two reservations of a, one of them two days long."""
    world = BilledWorld()
    long = world.booked(b.book(gpus=3, start=1, end=50, tags={"project": "x"}))
    short = world.booked(b.book(gpus=2, start=1, end=2.5))
    world.applied(long, b.at(1))
    world.ran(short, b.at(1), b.at(2.5))
    world.freed(long, b.at(50))
    return world


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("grain", ["hour", "day"])
def test_a_file_reads_back_as_it_was_and_passes_the_linter(
    tmp_path: Path, form: str, grain: str
) -> None:
    rows = busy().rows()
    rows = rows if grain == "hour" else list(by_day(rows))
    file = tmp_path / f"charges.{form}"
    assert WRITERS[form](file, rows) == len(rows)
    back = list(read_file(file))
    lint(back)
    assert back == rows
    assert tuple(back[0]) == COLUMNS


def test_nothing_differs_where_nothing_was_changed() -> None:
    world = busy()
    verdict = reconcile(world.ratings(), world.rows())
    assert (verdict.holds, verdict.differences) == (True, [])
    assert verdict.rows == 51
    assert len(verdict.checked) == 7


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows[0].update(BilledCost="99"), "BilledCost is 99"),
        (lambda rows: rows[0].update(x_GpuMicroseconds="1"), "x_GpuMicroseconds is 1"),
        (lambda rows: rows[0].update(Tags="[]"), "Tags is []"),
        (lambda rows: rows.append(rows[0]), "there twice"),
        (lambda rows: rows.pop(), "is missing"),
        (lambda rows: rows[0].update(x_ChargeRecordId="strange"), "row strange: unknown"),
    ],
    ids=["coin", "amount", "tags", "twice", "missing", "unknown"],
)
def test_a_row_that_was_changed_is_named(change: Any, said: str) -> None:
    world = busy()
    rows = [dict(row) for row in world.rows()]
    change(rows)
    verdict = reconcile(world.ratings(), rows)
    assert not verdict.holds
    assert any(said in what for what in verdict.differences), verdict.differences


def test_usage_that_no_price_book_covers_is_named_with_its_hour() -> None:
    world = BilledWorld(end=b.at(2))
    world.ran(world.booked(b.book(gpus=1, start=1, end=4)), b.at(1), b.at(4))
    verdict = reconcile(world.ratings())
    assert verdict.count == 2
    assert "2026-01-01T02:00:00Z: no price book holds for a" in verdict.differences[0]


def test_a_seal_that_a_fresh_rating_does_not_make_is_named() -> None:
    world = busy()
    world.advance(b.at(31 * 24))
    month = (b.at(0), b.at(31 * 24))
    world.accept(c.ClosePeriod(TenantId("a"), *month))
    (january, _) = world.invoices()
    seal = seal_of(january)
    wrong = c.SealPeriod(
        seal.tenant_id,
        seal.start,
        seal.cutoff_seq,
        seal.rating_version,
        seal.rows,
        bytes(32),
        "1.00",
        seal.currency,
    )
    world.accept(wrong)
    verdict = reconcile(world.ratings())
    assert any("sealed row_root" in what for what in verdict.differences)
    assert any("sealed billed is 1.00" in what for what in verdict.differences)


def test_a_closed_month_reconciles_and_its_period_row_passes_the_linter() -> None:
    from focus_data_toolkit.model.validator import lint_focus_1_4_structure

    world = busy()
    world.close_period(b.at(0), b.at(31 * 24))
    assert reconcile(world.ratings(), world.rows()).differences == []
    rows = [
        period_row(i.period, created=i.period.start, updated=i.rated.until)
        for i in world.invoices()
    ]
    told = [{name: value or "" for name, value in row.items()} for row in rows]
    report = lint_focus_1_4_structure("Billing Period", told)
    assert report.ok, report.messages()
    assert tuple(rows[0]) == PERIOD_COLUMNS
    assert [row["BillingPeriodStatus"] for row in rows] == ["Closed", "Open"]


def test_a_book_of_a_tenant_comes_before_that_of_all_others() -> None:
    world = BilledWorld()
    world.accept(b.register("team", "a"))
    own = (Rate(SkuMeter.RESERVED_USED, "1"),)
    world.accept(c.PublishPriceBook("of-a", "EUR", b.at(-9000), own, tenant_ids=(TenantId("a"),)))
    world.ran(world.booked(b.book("team", gpus=1, start=1, end=2)), b.at(1), b.at(2))
    (row,) = world.rows()
    assert (row["BillingAccountId"], row["SubAccountId"]) == ("a", "team")
    assert row["SkuPriceId"] == "of-a:1/gpu/H100/reserved_used"
    assert row["BilledCost"] == "1"


def test_a_statement_shows_every_tenant_and_sums_to_what_is_billed() -> None:
    world = busy()
    world.accept(b.register("team", "a"))
    world.ran(world.booked(b.book("team", gpus=1, start=51, end=52)), b.at(51), b.at(52))
    closed = world.close_period(b.at(0), b.at(31 * 24))
    page = statement(closed)
    total, currency = billed(closed)
    assert f"<td>{currency}<td>" in page
    assert f'<td class="n">{total.normalize():f}</tr>' in page
    assert "<td>team<td>reserved used<td>H100" in page
    assert page.count("<rect") == 3
    assert "2026-01-03 reserved_used" in page
    assert closed.id in page
    assert "http" not in page, "it needs nothing from outside"


def test_an_account_that_used_nothing_has_an_empty_statement() -> None:
    world = BilledWorld()
    closed = world.close_period(b.at(0), b.at(24), "b")
    assert "0 rows" in statement(closed)

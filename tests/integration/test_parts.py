"""Rating in parts: whatever the number of processes, the rows are those of the whole."""

from pathlib import Path

import duckdb
import pytest

from connectors.exports.charges import read_file, write_parquet
from connectors.exports.parts import read_usage, reconcile_parts, write_parts
from domain import commands as c
from domain.ids import TenantId
from domain.pricing import Rate, SkuMeter, UnusedSplit
from projections.focus import canonical
from tests import builders as b
from tests.billing import RATES, BilledWorld, lint, total

MONTH = 31 * 24


@pytest.fixture(scope="module")
def world() -> BilledWorld:
    """Two accounts, members who share what nobody used, a closed month, a late fact, an open month."""
    rates = (*RATES, Rate(SkuMeter.LENT, "1"))
    world = BilledWorld(rates=rates, unused_split=UnusedSplit.MEMBERS)
    world.accept(b.register("z"))
    world.accept(c.GrantQuota(TenantId("z"), b.POOL, 8000, 0, 8000))
    for name in ("x", "y"):
        world.accept(b.register(name, "a"))
    long = world.booked(b.book(gpus=3, start=1, end=50))
    piece = long.holdings[0].piece
    other = world.booked(b.book("z", gpus=1, start=1, end=2.5))
    world.applied(long, b.at(1))
    world.ran(other, b.at(1), b.at(2.5))
    borrowed = world.booked(b.book(gpus=1, start=4, end=5, klass="borrowed"))
    world.ran(borrowed, b.at(4), b.at(5))
    world.freed(long, b.at(50))
    world.close_period(b.at(0), b.at(MONTH))
    world.advance(b.at(MONTH + 2))
    world.observed(long, (piece,), b.at(3), b.at(5), occupied=False)
    later = world.booked(b.book(gpus=2, start=MONTH + 4, end=MONTH + 6.5))
    world.ran(later, b.at(MONTH + 4), b.at(MONTH + 6.5))
    return world


@pytest.mark.parametrize("processes", [1, 2])
def test_parts_are_the_whole_and_duckdb_reads_them(
    world: BilledWorld, tmp_path: Path, processes: int
) -> None:
    folder = tmp_path / "export"
    count = write_parts(folder, world.ratings(), processes=processes)
    whole = [*world.rows("a"), *world.rows("z")]
    files = sorted(folder.glob("charges/*/*/*.parquet"))
    parts = [row for file in files for row in read_file(file)]
    assert sorted(map(canonical, parts)) == sorted(map(canonical, whole))
    assert {row["ChargeClass"] for row in parts} == {None, "Correction"}
    assert count == len(whole)
    lint(parts)
    where = [str(file.relative_to(folder / "charges")) for file in files]
    assert where == [
        "pool=P/period=20260101T000000Z/account=a.parquet",
        "pool=P/period=20260101T000000Z/account=z.parquet",
        "pool=P/period=20260201T000000Z/account=a.parquet",
    ]
    with duckdb.connect() as db:
        rows = db.sql(
            "SELECT period, pool, sum(BilledCost), count(*)"
            f" FROM read_parquet('{folder}/charges/*/*/*.parquet', hive_partitioning = true)"
            " GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        usage = db.sql(
            "SELECT sum(gpu_microseconds)"
            f" FROM read_parquet('{folder}/usage/cutoff={world.ratings().seq}/*/*/*.parquet')"
        ).fetchall()
    months = [[r for r in whole if (r["BillingPeriodStart"] or "")[5:7] == m] for m in ("01", "02")]
    assert [(row[2], row[3]) for row in rows] == [(total(m, "BilledCost"), len(m)) for m in months]
    lines = world.ratings().books(world.ratings().seq)[1]
    assert usage == [(sum(line.gpu_microseconds for line in lines),)]


def test_one_account_by_the_day_is_its_own_part(world: BilledWorld, tmp_path: Path) -> None:
    write_parts(tmp_path, world.ratings(), processes=1, account="z", grain="day")
    (file,) = tmp_path.glob("charges/*/*/*.parquet")
    rows = list(read_file(file))
    assert sorted(row["PricingQuantity"] or "" for row in rows) == ["-1", "1.5"]
    assert {row["BillingAccountId"] for row in rows} == {"z"}


def test_usage_reads_back_as_it_was(world: BilledWorld, tmp_path: Path) -> None:
    ratings = world.ratings()
    write_parts(tmp_path, ratings, processes=1)
    files = tmp_path.glob(f"usage/cutoff={ratings.seq}/*/*/*.parquet")
    wanted = [line for line in ratings.books(ratings.seq)[1] if line.gpu_microseconds]
    assert sorted(read_usage(files)) == sorted(wanted)
    assert TenantId("z") in {line.tenant_id for line in wanted}


def test_each_part_is_compared_with_a_fresh_rating(world: BilledWorld, tmp_path: Path) -> None:
    ratings = world.ratings()
    count = write_parts(tmp_path, ratings, processes=1)
    verdict = reconcile_parts(tmp_path, ratings, processes=2)
    assert (verdict.rows, verdict.differences) == (count, [])

    january = tmp_path / "charges" / "pool=P" / "period=20260101T000000Z"
    rows = list(read_file(january / "account=a.parquet"))
    write_parquet(january / "account=a.parquet", [rows[0] | {"BilledCost": "99"}, *rows[2:]])
    (january / "account=z.parquet").unlink()
    (january / "account=q.parquet").write_bytes(b"no parquet")
    february = tmp_path / "charges" / "pool=P" / "period=20260201T000000Z" / "account=a.parquet"
    write_parquet(february, reversed(list(read_file(february))))
    found = reconcile_parts(tmp_path, ratings, processes=1).differences
    assert len(found) == 5
    assert any("account=q.parquet: a fresh rating has no such part" in what for what in found)
    assert any("BilledCost is 99" in what for what in found)
    assert any(f"row {rows[1]['x_ChargeRecordId']} of" in what for what in found)
    assert any("account=z.parquet is missing, with" in what for what in found)
    assert any("in another order" in what for what in found)

"""Charges for others: rows in PostgreSQL as finance reads them, and closed ones on Kafka, once."""

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from fastavro import parse_schema, schemaless_reader
from kafka.errors import KafkaError

from connectors.kafka import charges, topics
from connectors.kafka.charges import ChargesDiffer, ChargeTopic
from connectors.kafka.settings import KafkaSettings
from connectors.postgres.charges import ChargePeriod, ChargeTables, RowsDiffer
from connectors.wiring.charging import kept_rows, load
from connectors.wiring.publishing import publish
from domain.ids import TenantId
from projections.focus import COLUMNS, PERIOD_COLUMNS, Row, canonical, focus_rows
from projections.invoicing import Invoice
from projections.reconciling import reconcile
from schemas.registry import AVRO, registry
from tests import builders as b
from tests.billing import BilledWorld, total
from tests.kafka_parts import records_on

MONTH = 31 * 24


def billed_world() -> BilledWorld:
    """A closed January of two accounts with 50 rows of a, and a February that is open."""
    world = BilledWorld()
    world.accept(b.register("z"))
    world.accept(b.grant("z", gpus=8))
    long = world.booked(b.book(gpus=3, start=1, end=50, tags={"project": "x"}))
    other = world.booked(b.book("z", gpus=1, start=1, end=2.5))
    world.applied(long, b.at(1))
    world.ran(other, b.at(1), b.at(2.5))
    world.freed(long, b.at(50))
    world.close_period(b.at(0), b.at(MONTH))
    world.ran(
        world.booked(b.book(gpus=2, start=MONTH + 1, end=MONTH + 3)),
        b.at(MONTH + 1),
        b.at(MONTH + 3),
    )
    return world


def bytes_of(rows: Iterator[Row] | list[Row]) -> list[bytes]:
    return sorted(canonical(row) for row in rows)


def test_finance_reads_in_sql_what_an_export_says(postgres_dsn: str) -> None:
    world = billed_world()
    assert load(postgres_dsn, world.ratings()) == (49, 4)
    rows = [*world.rows("a"), *world.rows("z")]
    assert bytes_of(kept_rows(postgres_dsn)) == bytes_of(rows)
    assert reconcile(world.ratings(), kept_rows(postgres_dsn)).differences == []
    with psycopg.connect(postgres_dsn) as connection:
        shape = connection.execute("SELECT * FROM finance.cost_and_usage LIMIT 0").description
        assert tuple(column.name for column in shape or ()) == COLUMNS
        shape = connection.execute("SELECT * FROM finance.billing_period LIMIT 0").description
        assert tuple(c.name for c in shape or () if c.name[:2] != "x_") == PERIOD_COLUMNS
        (sums,) = connection.execute("SELECT sum(billed), sum(gpu_hours) FROM finance.spend_by_day")
        assert sums == (total(rows, "BilledCost"), total(rows, "PricingQuantity"))
        told = connection.execute(
            'SELECT "BillingPeriodStatus", "x_BillingAccountId", "x_Rows" FROM finance.billing_period'
        ).fetchall()
        assert sorted(told) == [
            ("Closed", "a", 49),
            ("Open", "a", 2),
            ("Open", "z", 0),
            ("Open", "z", 2),
        ]


def test_closed_rows_are_kept_once_and_open_ones_are_replaced(postgres_dsn: str) -> None:
    world = billed_world()
    load(postgres_dsn, world.ratings())
    assert load(postgres_dsn, world.ratings()) == (0, 4)
    world.ran(
        world.booked(b.book(gpus=1, start=MONTH + 4, end=MONTH + 5)),
        b.at(MONTH + 4),
        b.at(MONTH + 5),
    )
    assert load(postgres_dsn, world.ratings()) == (0, 5)
    world.close_period(b.at(MONTH), b.at(MONTH + 28 * 24))
    closed, _ = load(postgres_dsn, world.ratings())
    assert closed == 3
    assert bytes_of(kept_rows(postgres_dsn)) == bytes_of([*world.rows("a"), *world.rows("z")])
    with (
        psycopg.connect(postgres_dsn) as connection,
        pytest.raises(psycopg.Error, match="append-only"),
    ):
        connection.execute("DELETE FROM closed_charge")


def test_rows_that_are_not_those_of_the_seal_are_not_kept(postgres_dsn: str) -> None:
    world = billed_world()
    january = world.invoices()[0]
    rows = list(focus_rows(january))
    which = ChargePeriod(january.period, january.rated.seq, january.rated.until, 99)
    with ChargeTables(postgres_dsn) as tables:
        with pytest.raises(RowsDiffer, match="its seal says"):
            tables.keep(which, rows[:-1])
        assert tables.closed() == set()
        assert list(tables.rows()) == []
        assert tables.keep(which, rows) == len(rows)


def on_topic(settings: KafkaSettings) -> list[tuple[dict[str, str], dict[str, Any]]]:
    """Every committed charge: its headers, and its value read with the schema's file alone."""
    schema = parse_schema(json.loads((AVRO / "messages" / "ClosedCharge.v1.avsc").read_text()))
    found = []
    for record in records_on(settings, topics.CHARGES):
        value: Any = schemaless_reader(io.BytesIO(record.value[5:]), schema, None)
        found.append(({name: each.decode() for name, each in record.headers}, value))
    return found


def told(invoice: Invoice) -> list[dict[str, str]]:
    return [{k: v for k, v in row.items() if v is not None} for row in focus_rows(invoice)]


@pytest.fixture
def in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charges, "BATCH_ROWS_MAX", 10)


@pytest.mark.usefixtures("in_small_batches")
def test_each_row_of_a_closed_period_is_on_the_topic_once_and_in_order(
    postgres_dsn: str, settings: KafkaSettings
) -> None:
    world = billed_world()
    load(postgres_dsn, world.ratings())
    assert publish(postgres_dsn, settings) == 49
    assert publish(postgres_dsn, settings) == 0, "the second time there is nothing new"
    january = world.invoices()[0]
    assert [value["columns"] for _, value in on_topic(settings)] == told(january)
    world.close_period(b.at(MONTH), b.at(MONTH + 28 * 24))
    load(postgres_dsn, world.ratings())
    assert publish(postgres_dsn, settings) == 2
    found = on_topic(settings)
    second = world.invoices()[1]
    assert [value["columns"] for _, value in found] == told(january) + told(second)
    assert [headers["ce_id"] for headers, _ in found] == [value["row_id"] for _, value in found]
    places = [(int(headers["lg_seq"]), int(headers["lg_row"])) for headers, _ in found]
    assert places == sorted(set(places))


@pytest.mark.usefixtures("in_small_batches")
def test_a_publisher_that_died_or_was_followed_doubles_nothing(
    postgres_dsn: str, settings: KafkaSettings
) -> None:
    world = billed_world()
    load(postgres_dsn, world.ratings())
    with ChargeTables(postgres_dsn) as tables:
        first = ChargeTopic(tables, registry(), settings)
        first.open()
        assert first.step() == 10
        producer = first._producer
        assert producer is not None
        producer.begin_transaction()
        (row,) = tables.after(first._place, 1)
        first._send(producer, row)
        producer.flush()
        heir = ChargeTopic(tables, registry(), settings)
        heir.open()
        assert heir.step() == 10
        with pytest.raises(KafkaError):
            producer.commit_transaction()
        while heir.step():
            pass
        for each in (first, heir):
            each.close()
    found = on_topic(settings)
    assert [value["columns"] for _, value in found] == told(world.invoices()[0])


def test_a_topic_with_another_charge_stops_the_publisher(
    postgres_dsn: str, settings: KafkaSettings
) -> None:
    world = billed_world()
    load(postgres_dsn, world.ratings())
    with ChargeTables(postgres_dsn) as tables:
        topic = ChargeTopic(tables, registry(), settings)
        topic.open()
        producer = topic._producer
        assert producer is not None
        (row,) = tables.after(topic._place, 1)
        producer.begin_transaction()
        topic._send(producer, replace(row, row_id="another", tenant_id=TenantId("a")))
        producer.commit_transaction()
        topic.close()
    with pytest.raises(ChargesDiffer, match="another; kept there is"):
        publish(postgres_dsn, settings)

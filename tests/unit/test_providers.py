"""Invoices of providers: taken in once, and compared with the overflow that there was."""

from decimal import Decimal
from typing import Any

import pytest

from domain import commands as c
from domain.consent import OverflowMode
from domain.ids import PoolId, TenantId
from domain.periods import ProviderLine
from projections.providers import Compared, compare
from schemas.image import image_of, ledger_from
from tests import builders as b
from tests.billing import BilledWorld
from tests.world import World

LINE = ProviderLine("H100", "4", "10.00")


def invoice(*lines: ProviderLine, **how: Any) -> c.ImportProviderInvoice:
    values: dict[str, Any] = {
        "provider": "cloud",
        "invoice_id": "2026-1",
        "pool_id": b.POOL,
        "start": b.at(0),
        "end": b.at(24),
        "currency": "EUR",
        "lines": lines or (LINE,),
    }
    return c.ImportProviderInvoice(**values | how)


def overflowing() -> BilledWorld:
    """Four GPUs for an hour beyond quota, at 3.1 each; an hour later two more."""
    world = BilledWorld()
    world.accept(b.register("d"))
    world.accept(b.grant("d", gpus=1))
    world.accept(c.ConsentOverflow(TenantId("d"), b.POOL, OverflowMode.AUTO, 8000))
    world.ran(world.booked(b.book("d", gpus=4, start=1, end=2, overflow=True)), b.at(1), b.at(2))
    world.ran(
        world.booked(b.book("d", gpus=2, start=30, end=31, overflow=True)), b.at(30), b.at(31)
    )
    return world


def compared(world: BilledWorld) -> list[Compared]:
    head = world.ratings().head()
    charges = {key: each for mine in head.accounts.values() for key, each in mine.items()}
    return list(compare(head.terms.provider_invoices, charges))


def test_an_invoice_stands_beside_the_overflow_of_its_span_and_what_was_charged_for_it() -> None:
    world = overflowing()
    world.accept(invoice(), principal=b.FINANCE)
    (found,) = compared(world)
    assert (found.invoiced_hours, found.overflow_hours, found.difference) == (
        Decimal(4),
        Decimal(4),
        Decimal(0),
    )
    assert (found.amount, found.charged) == (Decimal("10.00"), {"EUR": Decimal("12.4")})


def test_what_only_one_of_the_two_knows_is_a_difference() -> None:
    world = overflowing()
    world.advance(b.at(48))
    world.accept(invoice(ProviderLine("A100", "3", "1"), start=b.at(0), end=b.at(48)))
    told = [(found.model, found.difference) for found in compared(world)]
    assert told == [("A100", Decimal(3)), ("H100", Decimal(-6))]


def test_a_replaced_invoice_counts_no_more() -> None:
    world = overflowing()
    world.accept(invoice(ProviderLine("H100", "5", "12.5")))
    assert [found.difference for found in compared(world)] == [1]
    world.accept(invoice(invoice_id="2026-1b", replaces="2026-1"))
    assert [(f.invoice_id, f.difference) for f in compared(world)] == [("2026-1b", Decimal(0))]
    ledger = world.sequencer.ledger
    assert image_of(ledger_from(image_of(ledger))) == image_of(ledger)
    world.check()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (invoice(), "wrong-state"),
        (invoice(invoice_id="other"), "window-invalid"),
        (invoice(invoice_id="other", replaces="nothing"), "not-found"),
        (invoice(pool_id=PoolId("nowhere")), "not-found"),
        (invoice(invoice_id="other", start=b.at(24.5), end=b.at(26)), "window-invalid"),
        (invoice(invoice_id="other", start=b.at(26), end=b.at(25)), "window-invalid"),
        (invoice(invoice_id="other", start=b.at(24), end=b.at(900)), "window-invalid"),
        (invoice(invoice_id="no name"), "malformed"),
        (invoice(currency="EURO"), "malformed"),
        (invoice(lines=()), "malformed"),
        (invoice(LINE, LINE), "malformed"),
        (invoice(ProviderLine("H100", "-4", "1")), "malformed"),
        (invoice(ProviderLine("H100", "4", "a lot")), "malformed"),
        (invoice(*(ProviderLine(f"m{n}", "1", "1") for n in range(101))), "limit"),
    ],
    ids=[
        "twice",
        "overlap",
        "replaces-nothing",
        "pool",
        "half-hour",
        "backwards",
        "future",
        "name",
        "currency",
        "empty",
        "model-twice",
        "negative",
        "no-number",
        "too-many",
    ],
)
def test_an_invoice_that_makes_no_sense_is_refused(
    command: c.ImportProviderInvoice, reason: str
) -> None:
    world = World()
    world.advance(b.at(48))
    world.accept(invoice())
    before = dict(world.sequencer.ledger.provider_spans)
    assert world.refused(command) == reason
    assert world.sequencer.ledger.provider_spans == before
    world.check()


def test_a_tenant_may_not_import_invoices() -> None:
    world = World()
    world.advance(b.at(48))
    assert world.refused(invoice(), principal=b.tenant("a")) == "forbidden"

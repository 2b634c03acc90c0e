"""The money holds in seeded runs too: through crashes, late and doubled reports, and repacking."""

import pytest

from connectors.postgres.recorded import recorded
from domain import commands as c
from domain.pricing import FORGONE
from projections.focus import focus_rows
from projections.folding import Ratings
from projections.invoicing import invoices
from projections.reconciling import reconcile
from schemas.registry import registry
from tests import builders as b
from tests.billing import RATES, TERMS, lint
from tests.simulation.service import STEPS, Simulation

SEEDS = range(1000, 1006)


class Priced(Simulation):
    """A run with a price book."""

    def set_up(self) -> None:
        super().set_up()
        self.send([c.PublishPriceBook("standard", "EUR", b.at(-9000), (*RATES, *TERMS))])


@pytest.mark.parametrize("seed", SEEDS)
def test_every_charge_reconciles_in_a_seeded_run(seed: int) -> None:
    simulation = Priced(seed)
    for _ in range(STEPS):
        simulation.step()
    simulation.finish()
    events = simulation.store.events
    log = [recorded(event, registry()) for event in events]
    ratings = Ratings(lambda: log)
    verdict = reconcile(ratings)
    assert verdict.differences == []
    assert verdict.rows > 0
    head = ratings.head()
    for account_id in head.account_ids:
        for invoice in invoices(account_id, head, ratings.at):
            lint(list(focus_rows(invoice)))
    amounts = {line.meter for line in ratings.consumption(ratings.seq).lines(simulation.now)}
    assert "reserved_used" in amounts
    assert amounts & FORGONE

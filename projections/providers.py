"""Invoices of providers beside the overflow that the log tells of, and what tenants pay for it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from domain.facts.billing import ProviderInvoiceImported
from domain.pricing import EXACT, SkuMeter
from projections.rating import Charge, ChargeKey, hours


@dataclass(frozen=True, slots=True)
class Compared:
    """One model of one invoice: what the provider counts and wants, what the log tells and earns."""

    provider: str
    invoice_id: str
    pool_id: str
    model: str
    invoiced_hours: Decimal
    overflow_hours: Decimal
    currency: str
    amount: Decimal
    charged: Mapping[str, Decimal]
    """What tenants pay for that overflow, exact, by currency."""

    @property
    def difference(self) -> Decimal:
        """GPU-hours that are invoiced and that the log does not tell of; negative the other way."""
        return EXACT.subtract(self.invoiced_hours, self.overflow_hours)


def standing(found: Iterable[ProviderInvoiceImported]) -> list[ProviderInvoiceImported]:
    """The invoices that no later one replaces, in the order in which they came."""
    facts = list(found)
    replaced = {(fact.provider, fact.pool_id, fact.replaces) for fact in facts if fact.replaces}
    return [f for f in facts if (f.provider, f.pool_id, f.invoice_id) not in replaced]


def compare(
    found: Iterable[ProviderInvoiceImported], charges: Mapping[ChargeKey, Charge]
) -> Iterator[Compared]:
    """Every model that an invoice names or that had overflow in its span, by name.

    Overflow that is charged to nobody, for want of a price book, is in no charge: the invoice
    then has more.
    """
    overflow = [charge for key, charge in charges.items() if key.meter is SkuMeter.OVERFLOW]
    for fact in standing(found):
        amounts: defaultdict[str, int] = defaultdict(int)
        charged: defaultdict[str, defaultdict[str, Decimal]] = defaultdict(
            lambda: defaultdict(Decimal)
        )
        for charge in overflow:
            key = charge.key
            if key.pool_id == fact.pool_id and fact.start <= key.start < fact.end:
                amounts[key.model] += charge.gpu_microseconds
                had = charged[key.model][charge.price.currency]
                sums = EXACT.add(had, charge.contracted_cost)
                charged[key.model][charge.price.currency] = sums
        lines = {line.model: line for line in fact.lines}
        for model in sorted(lines.keys() | amounts.keys()):
            line = lines.get(model)
            yield Compared(
                fact.provider,
                fact.invoice_id,
                fact.pool_id,
                model,
                Decimal(line.gpu_hours if line else 0),
                hours(amounts[model]),
                fact.currency,
                Decimal(line.amount if line else 0),
                dict(charged[model]),
            )

"""Reconciling: whether rows, seals and books say the same, and where they do not."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from domain.facts.billing import PeriodClosed
from domain.facts.pool import PoolHoursClosed
from domain.ids import PoolId, TenantId
from domain.periods import PeriodState
from domain.pool_hours import PoolHour
from domain.pricing import SkuMeter
from domain.timespan import Instant
from projections.closing import MixedCurrencies, pool_hours, seal_of
from projections.consumption import POSSESSED, Line
from projections.focus import COLUMNS, Row, focus_rows, instant
from projections.folding import Ratings
from projections.invoicing import Invoice, invoices
from projections.rating import OUTSIDE, ChargeKey
from projections.tariffs import Tariffs
from projections.usage import CapacityRow, UsageRow

DIFFERENCES_MAX = 50
"""How many differences are named; all of them are counted."""


@dataclass(slots=True)
class Verdict:
    """What was checked, and every difference that was found."""

    rows: int = 0
    gpu_microseconds: int = 0
    checked: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    count: int = 0

    @property
    def holds(self) -> bool:
        """Whether nothing differs."""
        return not self.count

    def add(self, other: "Verdict") -> None:
        """Take in what was checked of the same rows elsewhere."""
        self.checked += other.checked
        for what in other.differences:
            self.differs(what)
        self.count += other.count - len(other.differences)

    def differs(self, what: str) -> None:
        """Note a difference."""
        self.count += 1
        if len(self.differences) < DIFFERENCES_MAX:
            self.differences.append(what)


def reconcile(ratings: Ratings, rows: Iterable[Row] | None = None) -> Verdict:
    """Check a whole log, and rows that somebody has against it.

    Pool-hours sum to capacity, and those that are closed are as they were; every second of use is charged once; seals are those of a fresh
    rating of their cutoff; originals and corrections together are a fresh rating of the whole.
    """
    verdict = Verdict()
    consumption, lines = ratings.books(ratings.seq)
    usage = (row for row in consumption.usage if isinstance(row, UsageRow))
    capacity = (row for row in consumption.capacity if isinstance(row, CapacityRow))
    books(usage, capacity, lines, Tariffs(consumption.terms), verdict)
    head = ratings.head()
    _closed_hours(head.terms.pool_hours, ratings, verdict)
    found: list[Invoice] = []
    for account_id in head.account_ids:
        of_account = list(invoices(account_id, head, ratings.at))
        found += of_account
        _sums(account_id, of_account, ratings, verdict)
        for invoice in of_account:
            seal = head.terms.seals.get((account_id, invoice.period.start))
            if seal is not None and invoice.period.state is PeriodState.CLOSED:
                _seal(invoice, seal, verdict)
    verdict.checked.append("each seal is that of a fresh rating of its cutoff")
    verdict.checked.append("originals and corrections together are a fresh rating")
    verdict.rows = sum(len(invoice.rows) for invoice in found)
    if rows is not None:
        compare_rows((row for invoice in found for row in focus_rows(invoice)), rows, verdict)
        verdict.checked.append("the rows given are those of a fresh rating")
    return verdict


def books(
    usage: Iterable[UsageRow],
    capacity: Iterable[CapacityRow],
    lines: Iterable[Line],
    tariffs: Tariffs,
    verdict: Verdict,
) -> None:
    """States sum to capacity in every pool-hour, and every delivered second is charged."""
    sums: defaultdict[tuple[str, int], int] = defaultdict(int)
    delivered: defaultdict[tuple[str, int, str], int] = defaultdict(int)
    for row in usage:
        sums[row.pool_id, row.hour] += row.gpu_microseconds
        if row.state in POSSESSED:
            delivered[row.pool_id, row.hour, row.state] += row.gpu_microseconds
    for whole in capacity:
        had = sums.pop((whole.pool_id, whole.hour), 0)
        if had != whole.gpu_microseconds:
            where = f"{whole.pool_id} {instant(whole.hour)}"
            verdict.differs(f"{where}: states come to {had}, capacity to {whole.gpu_microseconds}")
    for pool_id, hour in sums:
        verdict.differs(f"{pool_id} {instant(hour)}: states without capacity")
    verdict.checked.append("the states of every pool-hour sum to its capacity")
    hour_us = 3_600_000_000
    lent: defaultdict[tuple[str, int], int] = defaultdict(int)
    for line in lines:
        at = line.start_ms * 1000
        if line.meter is SkuMeter.BORROWED:
            lent[line.pool_id, at - at % hour_us] -= line.gpu_microseconds
        elif line.meter is SkuMeter.LENT:
            lent[line.pool_id, at - at % hour_us] += line.gpu_microseconds
        if line.meter in OUTSIDE or not line.gpu_microseconds:
            continue
        key = (line.pool_id, at - at % hour_us, line.meter.value)
        delivered[key] -= line.gpu_microseconds
        verdict.gpu_microseconds += line.gpu_microseconds
        if tariffs.of(line) is None:
            verdict.differs(
                f"{line.pool_id} {instant(at)}: no price book holds for {line.tenant_id};"
                f" {line.gpu_microseconds} GPU-microseconds are not charged"
            )
    for (pool_id, hour, state), rest in delivered.items():
        if rest:
            verdict.differs(f"{pool_id} {instant(hour)}: {state} differs by {rest}")
    for (pool_id, hour), rest in lent.items():
        if rest > 0:
            verdict.differs(f"{pool_id} {instant(hour)}: lent is above borrowed by {rest}")
    verdict.checked.append("every delivered GPU-second is charged to its holder, once")
    verdict.checked.append("no more is credited to lenders than others borrowed")


def _closed_hours(closed: Iterable[PoolHoursClosed], ratings: Ratings, verdict: Verdict) -> None:
    """Each closed hour says what the facts up to its cutoff say."""
    made: dict[int, dict[PoolId, dict[Instant, PoolHour]]] = {}
    for fact in closed:
        if fact.cutoff_seq not in made:
            made[fact.cutoff_seq] = pool_hours(ratings.books(fact.cutoff_seq)[0])
        fresh = made[fact.cutoff_seq].get(fact.pool_id, {})
        for hour in fact.hours:
            if fresh.get(hour.start) != hour:
                verdict.differs(
                    f"{fact.pool_id} {instant(hour.start)}: closed as {_told(hour)},"
                    f" a fresh fold up to {fact.cutoff_seq} says {_told(fresh.get(hour.start))}"
                )
    verdict.checked.append("each closed pool-hour is that of a fresh fold of its cutoff")


def _told(hour: PoolHour | None) -> str:
    if hour is None:
        return "nothing"
    return ", ".join(f"{part.state} {part.gpu_microseconds}" for part in hour.states)


def _sums(account_id: TenantId, found: list[Invoice], ratings: Ratings, verdict: Verdict) -> None:
    sums: defaultdict[ChargeKey, int] = defaultdict(int)
    for invoice in found:
        for row in invoice.rows:
            sums[row.charge.key] += row.gpu_microseconds
    for key, charge in ratings.head().of(account_id).items():
        sums[key] -= charge.gpu_microseconds
    for key, rest in sums.items():
        if rest:
            verdict.differs(
                f"{key.pool_id} {instant(key.start)} {key.tenant_id} {key.meter}"
                f" {key.reservation_id}: rows differ from a fresh rating by {rest}"
            )


def _seal(invoice: Invoice, seal: PeriodClosed, verdict: Verdict) -> None:
    name = f"{seal.tenant_id} {instant(seal.start)}"
    try:
        fresh = seal_of(invoice)
    except MixedCurrencies as error:
        verdict.differs(f"{name}: two currencies: {error}")
        return
    for what in ("cutoff_seq", "rating_version", "rows", "row_root", "billed", "currency"):
        sealed, made = getattr(seal, what), getattr(fresh, what)
        if sealed != made:
            told = [x.hex() if isinstance(x, bytes) else x for x in (sealed, made)]
            verdict.differs(f"{name}: sealed {what} is {told[0]}, a fresh rating says {told[1]}")


def compare_rows(fresh: Iterable[Row], rows: Iterable[Row], verdict: Verdict) -> None:
    """Rows that somebody has, one by one, against fresh ones."""
    wanted = {row["x_ChargeRecordId"]: row for row in fresh}
    for row in rows:
        row_id = row.get("x_ChargeRecordId")
        mine = wanted.pop(row_id, None)
        if mine is None:
            verdict.differs(f"row {row_id}: unknown, or there twice")
            continue
        for name in COLUMNS:
            if (row.get(name) or None) != mine[name]:
                words = f"row {row_id}: {name} is {row.get(name)}, a fresh rating says {mine[name]}"
                verdict.differs(words)
    for row_id, mine in wanted.items():
        verdict.differs(f"row {row_id} of {mine['ChargePeriodStart']} is missing")

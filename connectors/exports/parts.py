"""Rating in parts: usage as Parquet by account, pool and period, rated in as many processes as wanted.

Coins are shared inside an invoice line, and a line lies in one account, pool and period: so each
part is rated by itself, by the code that rates the whole, and all parts together are the whole.
"""

import gc
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow import parquet as pq

from connectors.exports.charges import ROWS_AT_ONCE, is_file_of, read_file, write_parquet
from domain.ids import PoolId, ReservationId, TenantId
from domain.pricing import SkuMeter
from domain.timespan import Instant
from projections.consumption import Booking, Line
from projections.focus import by_day, focus_rows, instant
from projections.folding import Ratings
from projections.invoicing import Invoice, Outline, Rated, invoice_of, outline
from projections.rating import rate
from projections.reconciling import Verdict, compare_rows
from projections.terms import Terms

T = TypeVar("T")

PARTS_MAX = 1_000_000
"""Files that one export writes at most."""

USAGE = pa.schema(
    [
        ("pool_id", pa.string()),
        ("start_ms", pa.int64()),
        ("tenant_id", pa.string()),
        ("meter", pa.string()),
        ("reservation_id", pa.string()),
        ("model", pa.string()),
        ("gpu_microseconds", pa.int64()),
        ("notice_seconds", pa.int64()),
        ("quote", pa.string()),
    ]
)
"""Lines of usage as they are rated: hours, cut where prices and periods begin."""


class TooManyParts(Exception):
    """The export would have more files than `PARTS_MAX`."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one process needs to make the rows of one account, pool and period."""

    to: Path
    outline: Outline
    until: Instant
    now: Sequence[Path]
    """Usage up to the period's cutoff: its own, and that of what it corrects."""
    before: Sequence[Path]
    """Usage up to the cutoff before, of what it corrects."""
    terms: Terms
    terms_before: Terms
    bookings: dict[ReservationId, Booking]
    grain: str


@dataclass(slots=True)
class _Cutoff:
    """The usage up to one position: where its files lie, and what charges say of it."""

    terms: Terms
    until: Instant
    bookings: dict[ReservationId, Booking]
    files: dict[tuple[TenantId, PoolId, int], Path] = field(default_factory=dict)
    held: dict[tuple[TenantId, PoolId, int], set[ReservationId]] = field(default_factory=dict)


def write_parts(
    folder: Path, ratings: Ratings, *, processes: int, account: str = "", grain: str = "hour"
) -> int:
    """Usage and charges of a log below a folder, partitioned; how many charge rows.

    `usage/cutoff=SEQ/pool=P/account=A/period=START.parquet` is what was rated,
    `charges/pool=P/period=START/account=A.parquet` what came of it. Raises `TooManyParts`.
    """
    parts = _prepared(folder, folder, ratings, account, grain)
    return sum(_of_all(make_part, parts, processes))


def reconcile_parts(folder: Path, ratings: Ratings, *, processes: int) -> Verdict:
    """Every file of charges by the hour below a folder against a fresh rating of the log.

    A part at a time is in memory, and each process has its own. Raises `TooManyParts`.
    """
    verdict = Verdict()
    with TemporaryDirectory(prefix="gpuledger-parts-") as scratch:
        parts = _prepared(Path(scratch), folder, ratings, "", "hour")
        strange = {*folder.glob("charges/*/*/*")} - {part.to for part in parts}
        for file in sorted(strange):
            verdict.differs(f"{file}: a fresh rating has no such part")
        for of_part in _of_all(check_part, parts, processes):
            verdict.rows += of_part.rows
            verdict.add(of_part)
    verdict.checked.append("the rows of each part are those of a fresh rating")
    return verdict


def _prepared(
    scratch: Path, folder: Path, ratings: Ratings, account: str, grain: str
) -> list[Part]:
    """The parts of a log; their usage is written below `scratch`, their charges go below `folder`."""
    plan = _plan(ratings, account)
    seqs = {seq for found in plan.values() for o in found for seq in (o.seq, o.before_seq) if seq}
    cutoffs = {seq: _write_usage(scratch, ratings, seq, plan) for seq in sorted(seqs)}
    return list(_parts(folder, plan, cutoffs, grain))


def _of_all(work: Callable[[Part], T], parts: Sequence[Part], processes: int) -> Iterator[T]:
    if processes == 1:
        yield from map(work, parts)
        return
    with worker_processes(processes) as pool:
        yield from pool.map(work, parts)


def worker_processes(count: int) -> ProcessPoolExecutor:
    """Processes that rate: rows and charges have no cycles, and looking for some takes a seventh."""
    context = get_context("spawn")
    return ProcessPoolExecutor(count, mp_context=context, initializer=gc.disable)


def _plan(ratings: Ratings, account: str) -> dict[TenantId, list[Outline]]:
    """The periods of each account that has usage or periods."""
    books, lines = ratings.books(ratings.seq)
    first: dict[TenantId, int] = {}
    for line in lines:
        account_id = books.terms.account_of(line.tenant_id)
        first[account_id] = min(first.get(account_id, line.start_ms), line.start_ms)
    names = sorted(first.keys() | books.terms.periods.keys())
    return {
        name: outline(name, books.terms, books.seq, books.last, Instant(first.get(name, 0) * 1000))
        for name in names
        if account in {"", name}
    }


def _write_usage(
    folder: Path, ratings: Ratings, seq: int, plan: dict[TenantId, list[Outline]]
) -> _Cutoff:
    """The usage up to a position, a file for each account, pool and period."""
    books, lines = ratings.books(seq)
    cutoff = _Cutoff(books.terms, books.last, books.bookings)
    starts = {name: [o.period.start for o in found] for name, found in plan.items()}
    grouped: defaultdict[tuple[TenantId, PoolId, int], list[Line]] = defaultdict(list)
    for line in lines:
        name = books.terms.account_of(line.tenant_id)
        if name in starts and line.gpu_microseconds:
            # What was before an account's first period belongs to it, too.
            place = max(0, bisect_right(starts[name], line.start_ms * 1000) - 1)
            grouped[name, line.pool_id, place].append(line)
    if len(grouped) > PARTS_MAX:
        raise TooManyParts(f"{len(grouped)} accounts x pools x periods, at most {PARTS_MAX}")
    for key, of_part in grouped.items():
        name, pool_id, place = key
        period = plan[name][place].period
        home = folder / "usage" / f"cutoff={seq}" / f"pool={pool_id}" / f"account={name}"
        home.mkdir(parents=True, exist_ok=True)
        cutoff.files[key] = home / f"period={_stamp(period.start)}.parquet"
        cutoff.held[key] = {line.reservation_id for line in of_part}
        pq.write_table(_table(of_part), cutoff.files[key], compression="zstd")
    return cutoff


def _parts(
    folder: Path, plan: dict[TenantId, list[Outline]], cutoffs: dict[int, _Cutoff], grain: str
) -> Iterator[Part]:
    for name, found in plan.items():
        pools = sorted({pool for c in cutoffs.values() for who, pool, _ in c.files if who == name})
        for place, which in enumerate(found):
            corrected = range(len(which.past))
            now, before = cutoffs[which.seq], cutoffs.get(which.before_seq)
            for pool_id in pools:
                mine = [(name, pool_id, number) for number in (*corrected, place)]
                old = [(name, pool_id, number) for number in corrected] if before else []
                held = set(chain.from_iterable(now.held.get(key, ()) for key in mine))
                if before is not None:
                    held |= set(chain.from_iterable(before.held.get(key, ()) for key in old))
                if not held:
                    continue
                home = folder / "charges" / f"pool={pool_id}"
                yield Part(
                    home / f"period={_stamp(which.period.start)}" / f"account={name}.parquet",
                    which,
                    now.until,
                    [now.files[key] for key in mine if key in now.files],
                    [before.files[key] for key in old if key in before.files] if before else [],
                    now.terms,
                    before.terms if before else now.terms,
                    {held_id: now.bookings[held_id] for held_id in held if held_id},
                    grain,
                )


def check_part(part: Part) -> Verdict:
    """Whether the file of a part has the rows of a fresh rating; else how they differ."""
    verdict = Verdict()
    invoice = _invoice(part)
    verdict.rows = len(invoice.rows)
    if not part.to.exists():
        if invoice.rows:
            verdict.differs(f"{part.to} is missing, with {verdict.rows} rows")
        return verdict
    try:
        if not is_file_of(part.to, focus_rows(invoice)):
            compare_rows(focus_rows(invoice), read_file(part.to), verdict)
            if verdict.holds:
                verdict.differs(f"{part.to}: its rows are in another order, or of other types")
    except (OSError, ValueError) as error:
        verdict.differs(f"{part.to}: {error}")
    return verdict


def _invoice(part: Part) -> Invoice:
    """One account's period, as far as it lies in the part's pool."""
    which = part.outline
    rated = _rated(part, which.seq, part.now, part.terms)
    before = None
    if which.before_seq:
        before = _rated(part, which.before_seq, part.before, part.terms_before)
    return invoice_of(which, rated, before)


def make_part(part: Part) -> int:
    """The charge rows of one part into its file; how many. No rows, no file."""
    rows = focus_rows(_invoice(part))
    if part.grain == "day":
        rows = by_day(rows)
    first = next(rows, None)
    if first is None:
        return 0
    part.to.parent.mkdir(parents=True, exist_ok=True)
    return write_parquet(part.to, chain((first,), rows))


def _rated(part: Part, seq: int, files: Sequence[Path], terms: Terms) -> Rated:
    charges = rate(read_usage(files), terms)
    accounts = {part.outline.period.tenant_id: charges}
    return Rated(seq, part.until, accounts, terms, part.bookings)


def read_usage(files: Iterable[Path]) -> Iterator[Line]:
    """Lines of usage, back from Parquet."""
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(ROWS_AT_ONCE):
            for pool, start, tenant, meter, held, model, amount, notice, quote in zip(
                *(column.to_pylist() for column in batch.columns), strict=True
            ):
                yield Line(
                    PoolId(pool),
                    start,
                    TenantId(tenant),
                    SkuMeter(meter),
                    ReservationId(held),
                    model,
                    amount,
                    notice,
                    quote,
                )


def _table(lines: Sequence[Line]) -> Any:  # noqa: ANN401 - pyarrow has no types
    columns = list(zip(*lines, strict=True))
    return pa.Table.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, USAGE.types, strict=True)],
        schema=USAGE,
    )


def _stamp(at: Instant) -> str:
    """An instant as a folder's name."""
    return instant(at).replace("-", "").replace(":", "")

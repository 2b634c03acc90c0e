"""Export: a month of 10,000 GPUs as FOCUS rows in Parquet, a process a core, and read back.

Two of its fifty tenants are made by default, and the month is reckoned from their rate; with
GPULEDGER_BENCH_WHOLE=1 all 7.4 million rows are.
"""

import os
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.charges import RESERVATIONS, T0_MS, TENANTS, bookings_of, lines_of, terms
from benchmarks.figures import Figure, main
from connectors.exports.charges import is_file_of, read_file, write_parquet
from connectors.exports.parts import worker_processes
from domain.ids import TenantId
from domain.periods import Period, PeriodState, Settlement
from domain.timespan import Instant
from projections.charges import by_account
from projections.focus import focus_rows
from projections.invoicing import Invoice, Outline, Rated, invoice_of
from projections.rating import rate

HOURS = 744
SAMPLE_TENANTS = 2


def _invoice(number: int) -> Invoice:
    """One tenant's month, rated."""
    book = terms()
    end = Instant((T0_MS + HOURS * 3_600_000) * 1000)
    charges = rate(lines_of(number, HOURS), book)
    rated = Rated(1, end, by_account(charges), book, bookings_of(number))
    name = TenantId(f"t{number}")
    period = Period(
        name, Instant(T0_MS * 1000), end, "UTC", Settlement.CHARGEBACK, PeriodState.CLOSING, 1
    )
    return invoice_of(Outline(period, 1, 0, (), is_first=True), rated, None)


def tenant(folder: str, number: int) -> tuple[int, int, int, float]:
    """One tenant's month: rows, bytes, the process's peak memory in KiB, seconds of its core."""
    begun = time.process_time()
    file = Path(folder) / f"t{number}.parquet"
    count = write_parquet(file, focus_rows(_invoice(number)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return count, file.stat().st_size, peak, time.process_time() - begun


def check(folder: str, number: int) -> float:
    """A tenant's file is that of a fresh rating; seconds of its core."""
    begun = time.process_time()
    file = Path(folder) / f"t{number}.parquet"
    assert is_file_of(file, focus_rows(_invoice(number))), "nothing was changed"
    return time.process_time() - begun


def measure() -> Sequence[Figure]:
    """All figures of the export."""
    tenants = TENANTS if os.environ.get("GPULEDGER_BENCH_WHOLE") else SAMPLE_TENANTS
    cores = os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="gpuledger-bench-") as folder:
        begun = time.perf_counter()
        with worker_processes(cores) as pool:
            made = list(pool.map(tenant, [folder] * tenants, range(tenants)))
            seconds = time.perf_counter() - begun
            begun = time.perf_counter()
            checked = sum(pool.map(check, [folder] * tenants, range(tenants)))
            checking = time.perf_counter() - begun
        rows = sum(count for count, *_ in made)
        begun = time.perf_counter()
        read = sum(1 for _ in read_file(Path(folder) / "t0.parquet"))
        read_rate = read / (time.perf_counter() - begun)
    month = RESERVATIONS * HOURS
    peak = sum(sorted((peak for _, _, peak, _ in made), reverse=True)[:cores]) / (1 << 20)
    return [
        Figure("export.rows", rows / seconds, "rows/s"),
        Figure("export.month", month / (rows / seconds), "s", 600, is_most=True),
        Figure("export.reconcile", month / (rows / checking), "s", 300, is_most=True),
        Figure("export.memory", peak, "GiB", 4, is_most=True),
        Figure("export.core", sum(core for *_, core in made) / rows * 1e6, "us/row"),
        Figure("export.reconcile-core", checked / rows * 1e6, "us/row"),
        Figure("export.bytes-a-row", sum(size for _, size, *_ in made) / rows, "bytes"),
        Figure("export.read-back", read_rate, "rows/s"),
        Figure("export.made", rows, "rows"),
    ]


if __name__ == "__main__":
    main(measure, __doc__ or "")

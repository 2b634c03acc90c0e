"""Readers: the openb pair, Philly, SWF, and a plain CSV of our own (docs/traces.md)."""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path

from connectors.traces.jobs import OnError, Rows, Trace, TraceJob, TraceNode, TraceRefused
from domain.sizes import ReservationClass, Size
from domain.units import GPUS_PER_NODE_MAX, MILLI_PER_GPU

BLOCK_NODES = 16
SWF_FIELDS = 18

Row = dict[str, str]


def read_nodes(path: Path) -> list[TraceNode]:
    """The nodes of an openb list, or of a plain one: `name,gpus,model[,cpu_milli,memory_mib]`.

    Nodes without GPUs are left out. Raises `TraceRefused`.
    """
    nodes: list[TraceNode] = []
    for line, row in _rows(path, {"model"}):
        name = row.get("sn") or row.get("name") or ""
        gpus = _whole(path, line, "gpu" if "gpu" in row else "gpus", row)
        if not name or gpus > GPUS_PER_NODE_MAX or gpus < 0:
            raise TraceRefused(f"{path}, line {line}, column gpus: {gpus} GPUs on {name!r}")
        if gpus:
            cpu = _whole(path, line, "cpu_milli", row) if row.get("cpu_milli") else 0
            memory = _whole(path, line, "memory_mib", row) if row.get("memory_mib") else 0
            block = f"block-{len(nodes) // BLOCK_NODES}"
            nodes.append(TraceNode(name, gpus, row["model"] or "GPU", cpu, memory, block))
    return nodes


def fleet_of(text: str) -> list[TraceNode]:
    """A fleet such as `552x8`: so many nodes of so many GPUs, in blocks of 16."""
    try:
        count, gpus = (int(part) for part in text.lower().split("x"))
    except ValueError as error:
        raise TraceRefused(f"--fleet {text!r}: write nodes x GPUs, such as 552x8") from error
    if not 0 < gpus <= GPUS_PER_NODE_MAX or count <= 0:
        raise TraceRefused(f"--fleet {text!r}: 1 to {GPUS_PER_NODE_MAX} GPUs a node")
    return [
        TraceNode(f"node-{number:05}", gpus, "GPU", block=f"block-{number // BLOCK_NODES}")
        for number in range(count)
    ]


def read_pods(path: Path, on_error: OnError) -> Trace:
    """An openb pod list: tenant = qos, best effort borrows, created to deleted."""
    rows = Rows(str(path), on_error)
    needed = {"name", "num_gpu", "gpu_milli", "gpu_spec", "qos", "creation_time", "deletion_time"}
    for line, row in _rows(path, needed, rows):
        numbers = _numbers(
            rows, line, row, ("num_gpu", "gpu_milli", "creation_time", "deletion_time")
        )
        if numbers is None:
            continue
        gpus, milli, start, end = numbers
        if not gpus or not milli:
            rows.trace.skipped += 1
        elif end <= start:
            rows.malformed(line, "deletion_time", "the end is not after the start")
        else:
            share = gpus == 1 and milli < MILLI_PER_GPU
            klass = ReservationClass.BORROWED if row["qos"] == "BE" else ReservationClass.GUARANTEED
            models = tuple(filter(None, row["gpu_spec"].split("|")))
            size = Size(share_milli=milli) if share else Size(gpus=gpus)
            rows.trace.jobs.append(
                TraceJob(row["name"], row["qos"] or "none", start, end, size, models, klass)
            )
    return _sorted(rows.trace)


def read_jobs(path: Path, on_error: OnError) -> Trace:
    """The Philly CSV (`submit_s,duration_s,num_gpus,vc`), or a plain one of ours."""
    with path.open(newline="") as file:
        header = next(csv.reader(file), [])
    return _read_philly(path, on_error) if "vc" in header else _read_plain(path, on_error)


def _read_philly(path: Path, on_error: OnError) -> Trace:
    rows = Rows(str(path), on_error)
    for line, row in _rows(path, {"submit_s", "duration_s", "num_gpus", "vc"}, rows):
        numbers = _numbers(rows, line, row, ("submit_s", "duration_s", "num_gpus"))
        if numbers is None:
            continue
        start, duration, gpus = numbers
        _add(
            rows,
            line,
            f"job-{line}",
            row["vc"],
            start,
            start + duration,
            Size(gpus=gpus),
            "duration_s",
        )
    return _sorted(rows.trace)


def _read_plain(path: Path, on_error: OnError) -> Trace:
    rows = Rows(str(path), on_error)
    needed = {"name", "tenant", "submit_s", "duration_s", "gpus"}
    for line, row in _rows(path, needed, rows):
        numbers = _numbers(rows, line, row, ("submit_s", "duration_s", "gpus"))
        if numbers is None:
            continue
        start, duration, gpus = numbers
        share = row.get("gpu_milli", "")
        size = Size(gpus=gpus)
        if share and share.isdigit() and 0 < int(share) < MILLI_PER_GPU and gpus == 1:
            size = Size(share_milli=int(share))
        models = tuple(filter(None, (row.get("models") or "").split("|")))
        _add(
            rows,
            line,
            row["name"],
            row["tenant"],
            start,
            start + duration,
            size,
            "duration_s",
            models,
        )
    return _sorted(rows.trace)


def read_swf(path: Path, on_error: OnError) -> Trace:
    """A log in the Standard Workload Format: requested processors stand for GPUs.

    Tenant = group, where it is known, else user. A job runs from its submission for its run
    time: its wait was the old scheduler's doing.
    """
    rows = Rows(str(path), on_error)
    first: int | None = None
    with path.open() as file:
        for line, text in enumerate(file, 1):
            fields = text.split()
            if not fields or text.startswith(";"):
                continue
            if len(fields) < SWF_FIELDS:
                rows.bad(line, "18", f"an SWF row has {SWF_FIELDS} fields, not {len(fields)}")
                continue
            try:
                submit, run, allocated, asked = (int(fields[at]) for at in (1, 3, 4, 7))
            except ValueError as error:
                rows.bad(line, "2, 4, 5 or 8", str(error))
                continue
            first = submit if first is None else min(first, submit)
            gpus = asked if asked > 0 else allocated
            tenant = f"g{fields[12]}" if fields[12] not in {"-1", "1"} else f"u{fields[11]}"
            _add(
                rows,
                line,
                f"job-{fields[0]}",
                tenant,
                submit,
                submit + run,
                Size(gpus=max(0, gpus)),
                "4",
            )
    base = first or 0
    rows.trace.jobs = [
        TraceJob(j.name, j.tenant, j.start_s - base, j.end_s - base, j.size)
        for j in rows.trace.jobs
    ]
    return _sorted(rows.trace)


def _add(
    rows: Rows,
    line: int,
    name: str,
    tenant: str,
    start: int,
    end: int,
    size: Size,
    column: str,
    models: tuple[str, ...] = (),
) -> None:
    if not (size.gpus or size.share_milli):
        rows.trace.skipped += 1
    elif end <= start:
        rows.malformed(line, column, "the end is not after the start")
    else:
        rows.trace.jobs.append(TraceJob(name, tenant, start, end, size, models))


def _sorted(trace: Trace) -> Trace:
    trace.jobs.sort(key=lambda job: (job.start_s, job.name))
    return trace


def _rows(path: Path, needed: set[str], rows: Rows | None = None) -> Iterator[tuple[int, Row]]:
    """The rows of a CSV with their lines; a row that is cut off is told like any other."""
    refuse: Callable[[int, str, str], None] = rows.bad if rows else _refuser(path)
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        missing = needed - set(reader.fieldnames or ())
        if missing:
            raise TraceRefused(f"{path}, line 1: no column {', '.join(sorted(missing))}")
        for row in reader:
            if None in row or None in row.values():
                refuse(reader.line_num, "-", "the row has another number of columns")
                continue
            yield reader.line_num, row


def _refuser(path: Path) -> Callable[[int, str, str], None]:
    def refuse(line: int, column: str, why: str) -> None:
        raise TraceRefused(f"{path}, line {line}, column {column}: {why}")

    return refuse


def _numbers(rows: Rows, line: int, row: Row, columns: tuple[str, ...]) -> list[int] | None:
    """Whole numbers of a row, or None when one of them is none (and was told)."""
    numbers: list[int] = []
    for column in columns:
        try:
            numbers.append(int(row[column] or "0"))
        except ValueError:
            rows.bad(line, column, f"{row[column]!r} is no whole number")
            return None
    return numbers


def _whole(path: Path, line: int, column: str, row: Row) -> int:
    try:
        return int(row[column])
    except (KeyError, ValueError) as error:
        raise TraceRefused(f"{path}, line {line}, column {column}: no whole number") from error

"""The journal beside what PostgreSQL can do at all: bare group commits and bare single rows.

`python -m benchmarks.journal` starts an embedded, durable PostgreSQL; `--dsn` names another
server, whose database must be empty. `raw_seconds` is also the raw limit of the sequencer.
"""

import argparse
import json
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psycopg

from connectors.embedded.server import EmbeddedPostgres
from connectors.postgres import copying
from connectors.postgres.journal import PostgresJournal, connect
from connectors.postgres.migrate import migrate
from domain.journal import Batch, Cell, Claim, Head, StoredEvent, Tile
from domain.merkle import Tree, leaf_hash
from domain.timespan import Instant
from schemas.queries import queries

SIZES = (1, 16, 256, 512)
SECONDS_EACH = 3.0
BODY_BYTES, ENVELOPE_BYTES = 160, 220
"""About what a confirmed booking takes."""
NODES = 5_000
SPAN_MICROSECONDS = 900_000_000
NOON = Instant(1_764_590_400_000_000)
WARM_UP_BATCHES = 5


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number, with the bare limit of the same run where it has one."""

    id: str
    figure: float
    unit: str
    raw: float | None = None

    @property
    def ratio(self) -> float | None:
        """The figure in parts of its raw limit."""
        return None if self.raw is None else self.figure / self.raw


def batches(head: Head, size: int) -> Iterator[Batch]:
    """Batches of bookings that never meet: an event, a claim and a cell of one GPU each."""
    tree, seq = Tree.from_bytes(head.tree), head.seq
    while True:
        events = [_event(seq + nth) for nth in range(1, size + 1)]
        tree, full = tree.grown([event.leaf for event in events])
        grown = Head(
            head.shard, events[-1].seq, head.epoch, events[-1].recorded_at, tree.to_bytes()
        )
        tiles = [Tile(tile.level, tile.index, tile.hashes) for tile in full]
        claims = [_claim(event.seq) for event in events]
        cells = [_cell(event.seq) for event in events]
        yield Batch(head, grown, events, claims, [], cells, tiles, [])
        head, seq = grown, grown.seq


def _event(seq: int) -> StoredEvent:
    envelope = seq.to_bytes(8, "big").ljust(ENVELOPE_BYTES, b"e")
    body = seq.to_bytes(8, "big").ljust(BODY_BYTES, b"b")
    return StoredEvent(
        seq,
        "ReservationConfirmed.v1",
        f"reservation/{seq:032x}",
        1,
        Instant(NOON + seq),
        envelope,
        body,
        leaf_hash(envelope + body),
    )


def _claim(seq: int) -> Claim:
    identity = seq.to_bytes(16, "big")
    return Claim(f"tenant-{seq % 50}", f"key-{seq:032x}", identity, identity * 2, seq, seq)


def _cell(seq: int) -> Cell:
    """The next GPU of the fleet; once all were had, the same ones a quarter of an hour later."""
    span, gpu = divmod(seq, NODES * 8)
    start = NOON + span * SPAN_MICROSECONDS
    return Cell(gpu * 1000, gpu * 1000 + 1000, Instant(start), Instant(start + SPAN_MICROSECONDS))


def raw_seconds(dsn: str, made: Sequence[Batch], epoch: int) -> float:
    """How long the bare loop takes: head, claims, events, cells; the bytes made before."""
    ready = [_copies(batch) for batch in made]
    connection = connect(dsn)
    sql = queries()["move_head"].encode()
    began = time.perf_counter()
    for batch, copies in zip(made, ready, strict=True):
        with connection.transaction(), connection.cursor() as cursor:
            moved = {
                "shard": batch.head.shard,
                "epoch": epoch,
                "previous_seq": batch.previous.seq,
                "seq": batch.head.seq,
                "recorded_at": batch.head.recorded_at,
                "tree": batch.head.tree,
            }
            assert cursor.execute(sql, moved).rowcount == 1
            for table, data in copies:
                with cursor.copy(f"COPY {table} FROM STDIN (FORMAT binary)".encode()) as copy:
                    copy.write(data)
    seconds = time.perf_counter() - began
    connection.close()
    return seconds


def _copies(batch: Batch) -> list[tuple[str, bytes]]:
    shard = batch.head.shard
    return [
        ("claim", copying.claims(shard, batch.claims)),
        ("journal", copying.events(shard, batch.events)),
        ("cell", copying.cells(shard, batch.cells_added)),
    ]


def journal_events_per_s(journal: PostgresJournal, made: Sequence[Batch]) -> float:
    """Events per second through the journal itself, claims read before and tiles written."""
    began = time.perf_counter()
    for batch in made:
        journal.claims([(claim.scope, claim.key) for claim in batch.claims])
        journal.append(batch)
    return sum(len(batch.events) for batch in made) / (time.perf_counter() - began)


def bare_commit_ms(dsn: str, seconds: float = SECONDS_EACH) -> float:
    """The median time of one durable commit of one row, in milliseconds."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(b"SET synchronous_commit = on")
        connection.execute(b"CREATE TABLE bare (id bigint PRIMARY KEY, body bytea NOT NULL)")
        body = bytes(BODY_BYTES)

        def insert(number: int) -> None:
            connection.execute("INSERT INTO bare VALUES (%s, %s)", (number, body))

        figure = _median_ms(insert, seconds)
        connection.execute(b"DROP TABLE bare")
    return figure


def lone_append_ms(
    journal: PostgresJournal, made: Iterator[Batch], seconds: float = SECONDS_EACH
) -> float:
    """The median time from a lone command's batch to its durable commit, its claim read first."""

    def append(_: int) -> None:
        batch = next(made)
        journal.claims([(claim.scope, claim.key) for claim in batch.claims])
        journal.append(batch)

    return _median_ms(append, seconds)


def _median_ms(once: Callable[[int], None], seconds: float) -> float:
    times: list[float] = []
    until = time.perf_counter() + seconds
    while (began := time.perf_counter()) < until:
        once(len(times))
        times.append(time.perf_counter() - began)
    return median(times) * 1000


def measure(dsn: str, seconds: float = SECONDS_EACH) -> list[Figure]:
    """Every figure, on an empty, migrated database."""
    journal = PostgresJournal(dsn)
    head = journal.take_lease("benchmark")
    figures: list[Figure] = []
    for size in SIZES:
        stream = batches(head, size)
        warm = [next(stream) for _ in range(WARM_UP_BATCHES)]
        journal_events_per_s(journal, warm)
        count = _batches_for(journal, stream, size, seconds)
        made = [next(stream) for _ in range(2 * count)]
        raw = count * size / raw_seconds(dsn, made[:count], head.epoch)
        figure = journal_events_per_s(journal, made[count:])
        figures.append(Figure(f"journal-append-{size}", figure, "events/s", raw))
        head = made[-1].head
    raw_ms = bare_commit_ms(dsn, seconds)
    lone_ms = lone_append_ms(journal, batches(head, 1), seconds)
    figures.append(Figure("journal-lone", lone_ms, "ms", raw_ms))
    journal.release_lease()
    journal.close()
    return figures


def _batches_for(
    journal: PostgresJournal, stream: Iterator[Batch], size: int, seconds: float
) -> int:
    """How many batches of a size fill so many seconds, by a short trial."""
    trial = [next(stream) for _ in range(WARM_UP_BATCHES)]
    return max(WARM_UP_BATCHES, int(seconds * journal_events_per_s(journal, trial) / size))


def main(arguments: Sequence[str]) -> int:
    """Measure and print, as a table or as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dsn", help="an empty database; without it an embedded one")
    parser.add_argument("--seconds", type=float, default=SECONDS_EACH, help="per figure")
    parser.add_argument("--json", action="store_true", help="print only JSON")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        server = None if options.dsn else EmbeddedPostgres(Path(folder), secrets.token_hex(8))
        dsn = options.dsn if server is None else server.start()
        try:
            migrate(dsn)
            figures = measure(dsn, options.seconds)
        finally:
            if server is not None:
                server.stop()
    _tell(figures, as_json=options.json)
    return 0


def _tell(figures: Sequence[Figure], *, as_json: bool) -> None:
    if as_json:
        rows = [
            {"id": f.id, "figure": f.figure, "unit": f.unit, "raw": f.raw, "ratio": f.ratio}
            for f in figures
        ]
        print(json.dumps(rows))
        return
    for f in figures:
        print(f"{f.id:22}{f.figure:12,.2f} {f.unit:9} raw {f.raw:12,.2f}  ratio {f.ratio:.2f}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

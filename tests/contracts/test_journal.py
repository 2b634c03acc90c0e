"""What every journal promises: the one in memory and the one in PostgreSQL, by the same tests."""

from collections.abc import Callable, Iterator

import pytest

from connectors.memory.journal import MemoryJournal, MemoryStore
from connectors.postgres.journal import PostgresJournal
from domain.journal import Cell, CellsOverlap, Fenced, Journal, Snapshot
from domain.merkle import Tree, root_of
from domain.record import IngressPlace
from domain.timespan import Instant
from tests import journal_batches as b

NewWriter = Callable[[], Journal]
SIZES = [1, 16, 17, 300]
"""Around the border between one statement and COPY, and beyond a full tile."""


@pytest.fixture(params=["memory", "postgres"])
def new_writer(request: pytest.FixtureRequest) -> Iterator[NewWriter]:
    """Makes writers over one and the same log."""
    if request.param == "memory":
        store = MemoryStore()
        yield lambda: MemoryJournal(store)
        return
    dsn = request.getfixturevalue("postgres_dsn")
    opened: list[PostgresJournal] = []

    def new() -> Journal:
        opened.append(PostgresJournal(dsn))
        return opened[-1]

    yield new
    for journal in opened:
        journal.close()


def test_an_empty_log_has_the_head_zero_and_its_first_writer_the_epoch_one(
    new_writer: NewWriter,
) -> None:
    head = new_writer().take_lease("first")
    assert (head.shard, head.seq, head.epoch, head.recorded_at, head.tree) == (0, 0, 1, 0, b"")


@pytest.mark.parametrize("size", SIZES)
def test_what_was_appended_is_read_back_byte_for_byte(new_writer: NewWriter, size: int) -> None:
    journal = new_writer()
    first = b.batch(journal.take_lease("writer"), size)
    journal.append(first)
    second = b.batch(first.head, 1)
    journal.append(second)
    assert list(journal.read_all(0)) == [*first.events, *second.events]
    assert list(journal.read_all(size)) == list(second.events)
    assert list(journal.read(0, 1)) == [first.events[0]]
    assert not journal.read(size + 1, 10)


def test_positions_have_no_gap_over_batches_of_all_sizes(new_writer: NewWriter) -> None:
    journal = new_writer()
    head = journal.take_lease("writer")
    for size in (1, 20, 3, 17, 16, 1):
        written = b.batch(head, size, keys=[f"key-{head.seq}"])
        journal.append(written)
        head = written.head
    events = list(journal.read_all(0))
    assert [event.seq for event in events] == list(range(1, 59))
    assert Tree.from_bytes(head.tree).root == root_of([event.leaf for event in events])


def test_the_next_writer_goes_on_from_the_head_under_a_higher_epoch(new_writer: NewWriter) -> None:
    one, other = new_writer(), new_writer()
    head = one.take_lease("one")
    written = b.batch(head, 2)
    one.append(written)
    one.release_lease()
    taken = other.take_lease("other")
    assert taken.epoch == head.epoch + 1
    assert (taken.seq, taken.recorded_at, taken.tree) == (
        2,
        written.head.recorded_at,
        written.head.tree,
    )


@pytest.mark.parametrize("size", SIZES)
def test_a_zombie_is_fenced_and_writes_nothing(new_writer: NewWriter, size: int) -> None:
    zombie, heir = new_writer(), new_writer()
    head = zombie.take_lease("zombie")
    zombie.release_lease()
    taken = heir.take_lease("heir")
    stale = b.batch(head, size, keys=["stale"], added=[b.cell(0)])
    with pytest.raises(Fenced):
        zombie.append(stale)
    with pytest.raises(Fenced):
        zombie.renew_lease()
    assert not list(heir.read_all(0))
    assert not heir.claims([("tenant-a", "stale")])
    heir.append(b.batch(taken, size, keys=["stale"], added=[b.cell(0)]))
    assert len(list(heir.read_all(0))) == size


def test_a_zombie_that_copies_the_new_epoch_off_the_head_is_still_fenced(
    new_writer: NewWriter,
) -> None:
    zombie, heir = new_writer(), new_writer()
    zombie.take_lease("zombie")
    zombie.release_lease()
    taken = heir.take_lease("heir")
    with pytest.raises(Fenced):
        zombie.append(b.batch(taken, 1))


@pytest.mark.parametrize("size", SIZES)
def test_the_head_is_moved_from_where_it_is_or_not_at_all(new_writer: NewWriter, size: int) -> None:
    journal = new_writer()
    head = journal.take_lease("writer")
    journal.append(b.batch(head, 1))
    with pytest.raises(Fenced):
        journal.append(b.batch(head, size))
    assert len(list(journal.read_all(0))) == 1


@pytest.mark.parametrize("size", SIZES)
def test_claims_are_found_by_scope_and_key(new_writer: NewWriter, size: int) -> None:
    journal = new_writer()
    keys = [f"key-{n}" for n in range(size)]
    journal.append(b.batch(journal.take_lease("writer"), size, keys=keys))
    known = journal.claims([("tenant-a", "key-0"), ("tenant-b", "key-0"), ("tenant-a", "other")])
    assert known == {("tenant-a", "key-0"): b.claim("key-0", 1)}
    assert len(journal.claims([("tenant-a", key) for key in keys])) == size
    assert journal.claims([]) == {}


def test_keys_of_every_alphabet_and_with_quotes_come_back_as_they_are(
    new_writer: NewWriter,
) -> None:
    journal = new_writer()
    keys = ["schlüssel", "鍵", 'it\'s "so"', "{a,b}", "back\\slash", "%s %(x)s", "\t"]
    first = b.batch(journal.take_lease("writer"), 1, keys=keys)
    journal.append(first)
    more = [f"{key}-copied" for key in keys]
    journal.append(b.batch(first.head, 20, keys=more))
    asked = [("tenant-a", key) for key in (*keys, *more)]
    assert set(journal.claims(asked)) == set(asked)


@pytest.mark.parametrize("size", SIZES)
def test_cells_that_overlap_refuse_the_whole_batch(new_writer: NewWriter, size: int) -> None:
    journal = new_writer()
    first = b.batch(journal.take_lease("writer"), 1, added=[b.cell(0, 2, (0, 2))])
    journal.append(first)
    poison = b.batch(first.head, size, keys=["poison"], added=[b.cell(5), b.cell(1, 1, (1, 3))])
    with pytest.raises(CellsOverlap):
        journal.append(poison)
    assert len(list(journal.read_all(0))) == 1
    assert not journal.claims([("tenant-a", "poison")])
    journal.append(b.batch(first.head, size, added=[b.cell(5), b.cell(2, 1, (1, 3))]))


def test_two_cells_of_one_batch_may_not_overlap_either(new_writer: NewWriter) -> None:
    journal = new_writer()
    head = journal.take_lease("writer")
    with pytest.raises(CellsOverlap):
        journal.append(b.batch(head, 1, added=[b.cell(0), b.cell(0)]))
    with pytest.raises(CellsOverlap):
        journal.append(b.batch(head, 20, added=[b.cell(0), b.cell(0)]))


@pytest.mark.parametrize("size", [1, 20])
def test_cells_that_touch_do_not_overlap(new_writer: NewWriter, size: int) -> None:
    journal = new_writer()
    around = [
        b.cell(1, 1, (1, 2)),
        b.cell(0, 1, (1, 2)),
        b.cell(2, 1, (1, 2)),
        b.cell(1, 1, (0, 1)),
        b.cell(1, 1, (2, 3)),
    ]
    journal.append(b.batch(journal.take_lease("writer"), size, added=around))


@pytest.mark.parametrize("off", [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)])
def test_one_milli_gpu_for_one_microsecond_is_an_overlap(
    new_writer: NewWriter, off: tuple[int, int, int, int]
) -> None:
    journal = new_writer()
    middle = b.cell(1, 1, (1, 2))
    first = b.batch(journal.take_lease("writer"), 1, added=[middle])
    journal.append(first)
    left, right, early, late = off
    near = Cell(
        middle.end_milli - 1 if right else middle.first_milli - (500 if left else 0),
        middle.first_milli + 1 if left else middle.end_milli + (500 if right else 0),
        Instant(middle.end - 1 if late else middle.start - (b.HOUR if early else 0)),
        Instant(middle.start + 1 if early else middle.end + (b.HOUR if late else 0)),
    )
    with pytest.raises(CellsOverlap):
        journal.append(b.batch(first.head, 1, added=[near]))


@pytest.mark.parametrize("size", SIZES)
def test_cells_are_given_up_before_others_are_taken(new_writer: NewWriter, size: int) -> None:
    journal = new_writer()
    first = b.batch(journal.take_lease("writer"), 1, added=[b.cell(0, 4, (0, 8)), b.cell(9)])
    journal.append(first)
    moved = b.batch(
        first.head,
        size,
        removed=[b.cell(0, 4, (0, 8))],
        added=[b.cell(0, 4, (0, 3)), b.cell(0, 4, (3, 9))],
    )
    journal.append(moved)
    with pytest.raises(CellsOverlap):
        journal.append(b.batch(moved.head, 1, added=[b.cell(9)]))


def test_a_cell_that_is_not_there_cannot_be_given_up(new_writer: NewWriter) -> None:
    journal = new_writer()
    first = b.batch(journal.take_lease("writer"), 1, added=[b.cell(0, 2)])
    journal.append(first)
    with pytest.raises(AssertionError):
        journal.append(b.batch(first.head, 1, removed=[b.cell(0, 1)]))


@pytest.mark.parametrize("size", SIZES)
def test_a_batch_is_resolved_by_what_is_written(new_writer: NewWriter, size: int) -> None:
    journal = new_writer()
    head = journal.take_lease("writer")
    written = b.batch(head, size)
    assert not journal.resolve(written)
    journal.append(written)
    assert journal.resolve(written)


def test_offsets_alone_are_a_batch(new_writer: NewWriter) -> None:
    journal = new_writer()
    head = journal.take_lease("writer")
    places = [IngressPlace("commands", 0, 7), IngressPlace("commands", 0, 8)]
    only_offsets = b.batch_of(head, [], ingress=places)
    journal.append(only_offsets)
    assert not list(journal.read_all(0))
    journal.append(b.batch(only_offsets.head, 1))


def test_the_newest_snapshot_of_a_format_is_found(new_writer: NewWriter) -> None:
    journal = new_writer()
    journal.append(b.batch(journal.take_lease("writer"), 9))
    assert journal.newest_snapshot(b"v1") is None
    for seq in (3, 5, 7):
        journal.save_snapshot(Snapshot(seq, b"state %d" % seq, b"hash"), b"v1")
    assert journal.newest_snapshot(b"v1") == Snapshot(7, b"state 7", b"hash")
    assert journal.newest_snapshot(b"v2") is None


def test_older_snapshots_are_forgotten(new_writer: NewWriter) -> None:
    journal = new_writer()
    journal.append(b.batch(journal.take_lease("writer"), 9))
    journal.save_snapshot(Snapshot(1, b"old", b"hash"), b"v1")
    for seq in (2, 3, 4):
        journal.save_snapshot(Snapshot(seq, b"state", b"hash"), b"v2")
    assert journal.newest_snapshot(b"v1") is None
    assert journal.newest_snapshot(b"v2") is not None


def test_after_a_broken_invariant_the_journal_is_as_it_was(new_writer: NewWriter) -> None:
    journal = new_writer()
    first = b.batch(journal.take_lease("writer"), 1)
    journal.append(first)
    broken = b.batch(first.head, 1, keys=["broken"], removed=[b.cell(0)])
    with pytest.raises(AssertionError):
        journal.append(broken)
    assert not journal.claims([("tenant-a", "broken")])
    assert not journal.resolve(broken)
    second = b.batch(first.head, 1)
    journal.append(second)
    assert list(journal.read_all(0)) == [*first.events, *second.events]


@pytest.mark.parametrize("size", [1, 20])
def test_a_key_that_is_claimed_twice_is_a_broken_invariant(
    new_writer: NewWriter, size: int
) -> None:
    journal = new_writer()
    first = b.batch(journal.take_lease("writer"), 1, keys=["once"])
    journal.append(first)
    with pytest.raises(AssertionError):
        journal.append(b.batch(first.head, size, keys=["once"]))
    assert len(list(journal.read_all(0))) == 1


def test_a_snapshot_kept_late_is_not_the_newest(new_writer: NewWriter) -> None:
    journal = new_writer()
    journal.append(b.batch(journal.take_lease("writer"), 9))
    for seq in (7, 3):
        journal.save_snapshot(Snapshot(seq, b"state %d" % seq, b"hash"), b"v1")
    newest = journal.newest_snapshot(b"v1")
    assert newest is not None
    assert newest.seq == 7

"""The writer's lease in PostgreSQL: its terms end by the database's clock."""

from typing import Any

import psycopg
import pytest

from connectors.postgres import journal as postgres_journal
from connectors.postgres.journal import CHANNEL, JournalReader, PostgresJournal
from domain.journal import Fenced, JournalUnavailable
from tests import journal_batches as b


def expire(dsn: str) -> None:
    """Let the present term be over."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE writer_lease SET expires_at = now() - interval '1 second'")


def test_a_lease_that_is_held_keeps_others_out_and_names_the_holder(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_journal, "LEASE_WAIT_SECONDS_MAX", 0.1)
    one, other = PostgresJournal(postgres_dsn), PostgresJournal(postgres_dsn)
    head = one.take_lease("the first writer")
    with pytest.raises(JournalUnavailable, match="the first writer"):
        other.take_lease("another")
    one.append(b.batch(head))
    one.close()
    other.close()


def test_a_lease_that_expired_is_taken_over_and_the_former_writer_fenced(
    postgres_dsn: str,
) -> None:
    one, other = PostgresJournal(postgres_dsn), PostgresJournal(postgres_dsn)
    head = one.take_lease("one")
    expire(postgres_dsn)
    assert other.take_lease("other").epoch == head.epoch + 1
    with pytest.raises(Fenced):
        one.append(b.batch(head))
    with pytest.raises(Fenced):
        one.renew_lease()
    one.close()
    other.close()


def test_a_renewed_lease_lasts_another_term(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_journal, "LEASE_WAIT_SECONDS_MAX", 0.1)
    one, other = PostgresJournal(postgres_dsn), PostgresJournal(postgres_dsn)
    one.take_lease("one")
    expire(postgres_dsn)
    one.renew_lease()
    with pytest.raises(JournalUnavailable):
        other.take_lease("other")
    one.close()
    other.close()


def test_a_fenced_writer_cannot_end_its_heirs_lease(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, heir, third = (PostgresJournal(postgres_dsn) for _ in range(3))
    one.take_lease("one")
    one.release_lease()
    heir.take_lease("heir")
    one.release_lease()
    monkeypatch.setattr(postgres_journal, "LEASE_WAIT_SECONDS_MAX", 0.1)
    with pytest.raises(JournalUnavailable, match="heir"):
        third.take_lease("third")
    for journal in (one, heir, third):
        journal.close()


def test_shards_have_leases_and_logs_of_their_own(postgres_dsn: str) -> None:
    zero, one = PostgresJournal(postgres_dsn, 0), PostgresJournal(postgres_dsn, 1)
    first, second = zero.take_lease("zero"), one.take_lease("one")
    zero.append(b.batch(first, 2, keys=["key"]))
    one.append(b.batch(second, 20, keys=["key"]))
    assert [len(list(journal.read_all(0))) for journal in (zero, one)] == [2, 20]
    zero.close()
    one.close()


@pytest.mark.parametrize("size", [1, 40])
def test_a_commit_wakes_whoever_listens(postgres_dsn: str, size: int) -> None:
    journal = PostgresJournal(postgres_dsn)
    head = journal.take_lease("writer")
    with psycopg.connect(postgres_dsn, autocommit=True) as listener:
        listener.execute(f"LISTEN {CHANNEL}".encode())
        journal.append(b.batch(head, size))
        assert list(listener.notifies(timeout=5, stop_after=1))
    journal.close()


def test_a_reader_needs_no_lease(postgres_dsn: str) -> None:
    reader = JournalReader(postgres_dsn)
    assert reader.head() is None
    assert list(reader.read_all(0)) == []
    journal = PostgresJournal(postgres_dsn)
    written = b.batch(journal.take_lease("writer"), 30)
    journal.append(written)
    assert reader.head() == written.head
    assert reader.read_stream("node-7", 10) == [written.events[6]]
    reader.close()
    journal.close()


def test_an_epoch_never_goes_back(postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that slept between taking the lease and raising the epoch has lost it again."""
    slow, quick = PostgresJournal(postgres_dsn), PostgresJournal(postgres_dsn)
    rows_of = slow._rows
    epochs: list[int] = []

    def rows(name: str, **values: Any) -> list[dict[str, Any]]:
        if name == "raise_epoch":
            expire(postgres_dsn)
            epochs.append(quick.take_lease("quick").epoch)
        return rows_of(name, **values)

    monkeypatch.setattr(slow, "_rows", rows)
    with pytest.raises(JournalUnavailable, match="lost again"):
        slow.take_lease("slow")
    head = quick.head()
    assert head is not None
    assert head.epoch == epochs[0]
    quick.append(b.batch(head))
    slow.close()
    quick.close()

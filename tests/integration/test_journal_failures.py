"""What the journal says when PostgreSQL, or the wire to it, fails: the truth, each time."""

import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from connectors.embedded.server import EmbeddedPostgres, PostgresRefused
from connectors.postgres.journal import PostgresJournal
from connectors.postgres.migrate import migrate
from domain.journal import Batch, CommitUnknown, Fenced, Head, JournalUnavailable
from domain.record import IngressPlace
from tests import journal_batches as b
from tests.cutting_proxy import LATE_SECONDS, Cut, CuttingProxy

LARGE = 40
COMMIT = b"COMMIT\0"
ONE_STATEMENT = b"node-1"
"""The stream of the first event goes by as a value of the statement, prepared or not."""
PATHS = [(LARGE, COMMIT), (1, ONE_STATEMENT)]


@pytest.fixture
def proxy(postgres_dsn: str) -> Iterator[CuttingProxy]:
    """A wire that can break."""
    with CuttingProxy(postgres_dsn) as proxy:
        yield proxy


@pytest.fixture
def journal(proxy: CuttingProxy) -> Iterator[PostgresJournal]:
    """A writer to be, behind that wire."""
    journal = PostgresJournal(proxy.dsn)
    yield journal
    journal.close()


def grown(journal: PostgresJournal, head: Head) -> Batch:
    """A batch that is written without trouble, so that the journal is shown to work."""
    written = b.batch(head, 3, keys=[f"after-{head.seq}"])
    journal.append(written)
    assert len(list(journal.read_all(0))) == written.head.seq
    return written


@pytest.mark.parametrize(("size", "statement"), PATHS)
def test_a_commit_whose_answer_is_lost_is_found_by_reading(
    journal: PostgresJournal, proxy: CuttingProxy, size: int, statement: bytes
) -> None:
    written = b.batch(journal.take_lease("writer"), size, keys=["key"], added=[b.cell(0)])
    proxy.arm(statement, Cut.ANSWER_LOST)
    with pytest.raises(CommitUnknown):
        journal.append(written)
    assert journal.resolve(written)
    assert list(journal.read_all(0)) == list(written.events)
    assert journal.claims([("tenant-a", "key")])
    grown(journal, written.head)


@pytest.mark.parametrize(("size", "statement"), PATHS)
def test_a_commit_that_never_arrived_is_known_not_to_be_there(
    journal: PostgresJournal, proxy: CuttingProxy, size: int, statement: bytes
) -> None:
    head = journal.take_lease("writer")
    written = b.batch(head, size, keys=["key"], added=[b.cell(0)])
    proxy.arm(statement, Cut.LOST)
    with pytest.raises(CommitUnknown):
        journal.append(written)
    assert not journal.resolve(written)
    assert not journal.claims([("tenant-a", "key")])
    grown(journal, head)


@pytest.mark.parametrize(("size", "statement"), PATHS)
def test_a_commit_that_is_late_does_not_arrive_after_it_was_said_to_be_missing(
    journal: PostgresJournal, proxy: CuttingProxy, size: int, statement: bytes
) -> None:
    head = journal.take_lease("writer")
    written = b.batch(head, size, keys=["key"])
    proxy.arm(statement, Cut.LATE)
    with pytest.raises(CommitUnknown):
        journal.append(written)
    is_there = journal.resolve(written)
    time.sleep(2 * LATE_SECONDS)
    assert len(list(journal.read_all(0))) == (size if is_there else 0)


def test_a_session_that_lost_its_wire_does_not_keep_the_head(
    journal: PostgresJournal, postgres_dsn: str
) -> None:
    """As when the network is gone without a word: the server still believes in the session."""
    head = journal.take_lease("writer")
    lost = journal._open()
    lost.execute(b"BEGIN")
    lost.execute(b"UPDATE log_head SET seq = seq")
    journal._connection = None
    grown(journal, head)
    lost.close()


def test_offsets_alone_are_written_again_when_nobody_knows(
    journal: PostgresJournal, proxy: CuttingProxy
) -> None:
    written = grown(journal, journal.take_lease("writer"))
    offsets = b.batch_of(written.head, [], ingress=[IngressPlace("commands", 0, 7)])
    proxy.arm(COMMIT, Cut.ANSWER_LOST)
    with pytest.raises(CommitUnknown):
        journal.append(offsets)
    assert not journal.resolve(offsets)
    journal.append(offsets)
    grown(journal, written.head)


def test_a_connection_that_breaks_before_commit_wrote_nothing(
    journal: PostgresJournal, proxy: CuttingProxy
) -> None:
    head = journal.take_lease("writer")
    proxy.arm(b"COPY journal", Cut.LOST)
    with pytest.raises(JournalUnavailable):
        journal.append(b.batch(head, LARGE))
    assert not list(journal.read_all(0))
    grown(journal, head)


def test_who_resolves_a_commit_after_a_takeover_is_fenced(
    journal: PostgresJournal, proxy: CuttingProxy, postgres_dsn: str
) -> None:
    written = b.batch(journal.take_lease("writer"), LARGE)
    proxy.arm(COMMIT, Cut.LOST)
    with pytest.raises(CommitUnknown):
        journal.append(written)
    journal.release_lease()
    heir = PostgresJournal(postgres_dsn)
    heir.take_lease("heir")
    heir.close()
    with pytest.raises(Fenced):
        journal.resolve(written)


def test_a_session_that_was_terminated_is_made_anew(
    journal: PostgresJournal, postgres_dsn: str
) -> None:
    head = journal.take_lease("writer")
    with psycopg.connect(postgres_dsn, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )
    with pytest.raises(JournalUnavailable):
        journal.claims([("tenant-a", "key")])
    grown(journal, head)


@pytest.mark.parametrize("size", [1, LARGE])
def test_a_database_that_only_reads_is_unavailable(postgres_dsn: str, size: int) -> None:
    journal = PostgresJournal(postgres_dsn)
    head = journal.take_lease("writer")
    journal.close()
    name = psycopg.conninfo.conninfo_to_dict(postgres_dsn)["dbname"]
    setting = f"ALTER DATABASE {name} SET default_transaction_read_only = %s"
    with psycopg.connect(postgres_dsn, autocommit=True) as other:
        other.execute((setting % "on").encode())
        with pytest.raises(JournalUnavailable, match="read-only"):
            journal.append(b.batch(head, size))
        journal.close()
        other.execute(b"SET default_transaction_read_only = off")
        other.execute((setting % "off").encode())
    grown(journal, head)
    journal.close()


@pytest.mark.parametrize("size", [1, LARGE])
def test_a_full_disk_is_unavailable_and_nothing_is_written(postgres_dsn: str, size: int) -> None:
    """The disk is not really full: a trigger raises what PostgreSQL raises then, 53100."""
    journal = PostgresJournal(postgres_dsn)
    head = journal.take_lease("writer")
    with psycopg.connect(postgres_dsn, autocommit=True) as other:
        other.execute(
            b"CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            b" RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'; END $$;"
            b"CREATE TRIGGER full_disk AFTER INSERT ON journal EXECUTE FUNCTION full_disk()"
        )
        with pytest.raises(JournalUnavailable, match="No space left"):
            journal.append(b.batch(head, size, keys=["key"]))
        assert not journal.claims([("tenant-a", "key")])
        other.execute(b"DROP TRIGGER full_disk ON journal")
    grown(journal, head)
    journal.close()


def test_a_server_that_stopped_is_unavailable_and_its_return_is_noticed(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path, secrets.token_hex(8))
    try:
        server.start()
    except PostgresRefused as error:
        pytest.skip(f"no PostgreSQL: {error}")
    try:
        migrate(server.dsn)
        journal = PostgresJournal(server.dsn)
        head = grown(journal, journal.take_lease("writer")).head
        server.stop()
        for _ in range(2):
            with pytest.raises(JournalUnavailable):
                journal.claims([("tenant-a", "key")])
            with pytest.raises(JournalUnavailable):
                journal.append(b.batch(head, 1))
        server.start()
        grown(journal, head)
        journal.close()
    finally:
        server.stop()

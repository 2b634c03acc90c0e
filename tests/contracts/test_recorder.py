"""The journal's recorder passes the conformance suites of the eventsourcing library itself."""

import importlib
import importlib.util
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from eventsourcing.persistence import MapperDeserialisationError, ProgrammingError, StoredEvent
from psycopg.conninfo import make_conninfo

from connectors.postgres.journal import JournalReader, PostgresJournal
from connectors.postgres.migrate import migrate
from connectors.postgres.recorder import AvroMapper, JournalFact, JournalRecorder, ScratchRecorder
from connectors.sequencer.opening import open_sequencer
from domain.merkle import Tree, root_of
from schemas.envelope import decode_envelope, leaf_of
from schemas.registry import registry

ROOT = Path(__file__).parents[2]


def library_cases() -> Any:
    """The library's suites; they import a cipher, which no case here uses, so it may be missing."""
    name = "eventsourcing.cipher"
    if importlib.util.find_spec("Crypto") is None and name not in sys.modules:
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__dict__["AESCipher"] = None
    return importlib.import_module("eventsourcing.tests.persistence")


CASES = library_cases()


def scratch_of(dsn: str) -> str:
    """A fresh, migrated scratch schema in a database."""
    name = f"scratch_{secrets.token_hex(6)}"
    with psycopg.connect(dsn) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    scratch = make_conninfo(dsn, options=f"-c search_path={name}")
    migrate(scratch)
    return scratch


@pytest.fixture
def scratch_dsn(another_dsn: str) -> str:
    """A scratch schema in a database of its own, for migrations make schemas of a database, too."""
    return scratch_of(another_dsn)


class Scratch:
    """Gives the library's cases a recorder over a scratch schema."""

    @pytest.fixture(autouse=True)
    def _scratch(self, scratch_dsn: str) -> Iterator[None]:
        self.opened: list[ScratchRecorder] = []
        self.dsn = scratch_dsn
        yield
        for recorder in self.opened:
            recorder.close()

    def create_recorder(self) -> ScratchRecorder:
        self.opened.append(ScratchRecorder(self.dsn))
        return self.opened[-1]

    def new_originator_id(self) -> str:
        """Originators are streams, so they are texts."""
        return str(uuid4())


class TestApplicationRecorder(Scratch, CASES.ApplicationRecorderTestCase):  # type: ignore[misc,name-defined]
    """The library's cases for application recorders, the optional ones too."""

    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestTrackingRecorder(Scratch, CASES.TrackingRecorderTestCase):  # type: ignore[misc,name-defined]
    """The library's cases for tracking recorders."""


def records(count: int, stream: str = "stream") -> list[StoredEvent]:
    return [StoredEvent(stream, nth, "Topic.v1", b"state %d" % nth) for nth in range(1, count + 1)]


def test_raw_records_are_sealed_as_decided_facts_are(scratch_dsn: str) -> None:
    recorder = ScratchRecorder(scratch_dsn)
    recorder.insert_events(records(300))
    reader = JournalReader(scratch_dsn)
    events = list(reader.read_all(0))
    head = reader.head()
    assert head is not None
    assert Tree.from_bytes(head.tree).root == root_of([event.leaf for event in events])
    for event in events:
        assert event.leaf == leaf_of(event.envelope, event.body)
        assert decode_envelope(event.envelope).seq == event.seq
    reader.close()
    recorder.close()


def test_raw_records_are_refused_where_facts_are_kept(postgres_dsn: str) -> None:
    with pytest.raises(ProgrammingError, match="no scratch schema"):
        ScratchRecorder(postgres_dsn)
    reading = JournalRecorder(postgres_dsn)
    with pytest.raises(ProgrammingError, match="sequencer"):
        reading.insert_events(records(1))
    reading.close()


def test_a_stream_is_read_between_versions_and_from_both_ends(scratch_dsn: str) -> None:
    recorder = ScratchRecorder(scratch_dsn)
    recorder.insert_events(records(5))

    def versions(**how: Any) -> list[int]:
        return [event.originator_version for event in recorder.select_events("stream", **how)]

    assert versions() == [1, 2, 3, 4, 5]
    assert versions(gt=1, lte=4) == [2, 3, 4]
    assert versions(desc=True, limit=2) == [5, 4]
    recorder.close()


def test_facts_of_the_sequencer_are_read_through_the_library(postgres_dsn: str) -> None:
    journal = PostgresJournal(postgres_dsn)
    open_sequencer(journal, registry(), holder="test", secret=b"secret", clock=None)
    recorder = JournalRecorder(postgres_dsn)
    (notification,) = recorder.select_notifications(None, 10)
    mapper = AvroMapper(registry())
    told = mapper.to_domain_event(notification)
    assert notification.topic == "LeaseTaken.v1"
    assert told.fact.holder == "test"
    assert mapper.to_stored_event(told) == StoredEvent(
        notification.originator_id, 1, notification.topic, notification.state
    )
    journal.close()
    recorder.close()


def test_a_record_of_an_unknown_contract_is_named() -> None:
    mapper = AvroMapper(registry())
    with pytest.raises(MapperDeserialisationError, match="stream version 1"):
        mapper.to_domain_event(StoredEvent("stream", 1, "Unheard.v1", b""))
    with pytest.raises(MapperDeserialisationError, match="stream version 2"):
        mapper.to_domain_event(StoredEvent("stream", 2, "LeaseTaken.v1", b"\xff"))
    assert JournalFact("stream", 1, None).originator_id == "stream"


def test_one_module_alone_imports_the_library() -> None:
    importing = [
        path.relative_to(ROOT).as_posix()
        for folder in ("domain", "projections", "solvers", "schemas", "connectors")
        for path in (ROOT / folder).rglob("*.py")
        if "import eventsourcing" in (text := path.read_text()) or "from eventsourcing" in text
    ]
    assert importing == ["connectors/postgres/recorder.py"]

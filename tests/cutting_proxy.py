"""A proxy before PostgreSQL that cuts a connection at a chosen statement, as a network does."""

import socket
import tempfile
import threading
import time
from enum import Enum, auto
from pathlib import Path
from types import TracebackType
from typing import Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

CHUNK_BYTES = 65_536
LATE_SECONDS = 0.5


class Cut(Enum):
    """What becomes of the statement that the wire breaks at."""

    LOST = auto()
    """It never reaches the server."""
    ANSWER_LOST = auto()
    """The server does it; its answer does not come back."""
    LATE = auto()
    """The client loses the connection first; the server gets the statement a while later."""


class CuttingProxy:
    """Passes everything on until a statement's text goes by; armed, it cuts there, once."""

    def __init__(self, dsn: str) -> None:
        """A proxy before the server of a DSN."""
        self._target = conninfo_to_dict(dsn)
        self._folder = tempfile.TemporaryDirectory(prefix="cut-")
        self.dsn = make_conninfo(dsn, host=self._folder.name, port=5432, sslmode="disable")
        self._armed: tuple[bytes, Cut] | None = None
        self._listener = socket.socket(socket.AF_UNIX)
        self._open: list[socket.socket] = []
        self._muted: set[socket.socket] = set()

    def arm(self, statement: bytes, cut: Cut) -> None:
        """Cut at the next statement that contains these bytes."""
        self._armed = (statement, cut)

    def __enter__(self) -> Self:
        self._listener.bind(str(Path(self._folder.name) / ".s.PGSQL.5432"))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for one in (self._listener, *self._open):
            _close(one)
        self._folder.cleanup()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = self._connect()
            self._open += [client, server]
            for pump in (self._to_server, self._to_client):
                threading.Thread(target=pump, args=(client, server), daemon=True).start()

    def _connect(self) -> socket.socket:
        host, port = str(self._target.get("host", "localhost")), self._target.get("port") or 5432
        if not host.startswith("/"):
            return socket.create_connection((host, int(port)))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        while data := _receive(client):
            if self._armed is None or self._armed[0] not in data:
                if not _sent(server, data):
                    break
                continue
            self._cut(self._armed[1], client, server, data)
            break
        _close(server)
        _close(client)

    def _cut(self, cut: Cut, client: socket.socket, server: socket.socket, data: bytes) -> None:
        """Break the wire at a statement, the way that was asked for."""
        self._armed = None
        if cut is Cut.ANSWER_LOST:
            self._muted.add(client)
        if cut is Cut.LATE:
            _close(client)
            time.sleep(LATE_SECONDS)
        if cut is not Cut.LOST:
            _sent(server, data)
            time.sleep(LATE_SECONDS)

    def _to_client(self, client: socket.socket, server: socket.socket) -> None:
        while data := _receive(server):
            if client in self._muted:
                continue
            if not _sent(client, data):
                return
        _close(client)


def _receive(one: socket.socket) -> bytes:
    try:
        return one.recv(CHUNK_BYTES)
    except OSError:
        return b""


def _sent(one: socket.socket, data: bytes) -> bool:
    try:
        one.sendall(data)
    except OSError:
        return False
    return True


def _close(one: socket.socket) -> None:
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        one.close()
        return
    one.close()

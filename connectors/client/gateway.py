"""The sequencer's socket from the other side: many commands in flight, outcomes by number."""

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path

import structlog

from domain.submission import Outcome, OutcomeKind, Submission
from schemas.wire import decode_outcome, encode_submission, frame, split

_log = structlog.get_logger("gateway")

RECEIVE_BYTES = 1 << 20
ANSWER_SECONDS_MAX = 30.0
REACH_SECONDS_MAX = 1.0


class SequencerAway(ConnectionError):
    """The sequencer cannot be reached. What was sent may have been done: ask again by key."""


class Gateway:
    """Blocking, for one caller: sends a group, waits for all of it."""

    def __init__(self, path: Path, patience: float = ANSWER_SECONDS_MAX) -> None:
        """Connect when first asked, waiting so long for an answer."""
        self._path = path
        self._patience = patience
        self._socket: socket.socket | None = None
        self._inward = bytearray()

    def _open(self) -> socket.socket:
        if self._socket is None:
            fresh = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            fresh.settimeout(self._patience)
            try:
                fresh.connect(str(self._path))
            except OSError as error:
                fresh.close()
                raise SequencerAway(f"no sequencer at {self._path}: {error.strerror}") from error
            self._socket = fresh
            self._inward.clear()
        return self._socket

    def submit(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """The durable outcomes of commands, in their order. Raises `SequencerAway`."""
        outcomes: dict[int, Outcome] = {}
        connection = self._open()
        try:
            connection.sendall(
                b"".join(
                    frame(number, encode_submission(submission))
                    for number, submission in enumerate(submissions)
                )
            )
            while len(outcomes) < len(submissions):
                data = connection.recv(RECEIVE_BYTES)
                if not data:
                    raise SequencerAway("the sequencer closed the connection")
                self._inward += data
                for number, payload in split(self._inward):
                    outcomes[number] = decode_outcome(payload)
        except OSError as error:
            self.close()
            raise SequencerAway(str(error)) from error
        return [outcomes[number] for number in range(len(submissions))]

    def close(self) -> None:
        """Let go of the connection; the next question makes a new one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class AsyncGateway:
    """For many callers at once over one connection, which is made again when it breaks."""

    def __init__(self, path: Path) -> None:
        """Connect when it is first needed."""
        self._path = path
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._pending: dict[int, asyncio.Future[Outcome]] = {}
        self._number = 0
        self._connecting = asyncio.Lock()

    async def submit(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """The durable outcomes of commands, in their order; unavailable where none came."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                writer = self._writer or await self._open()
                futures = [self._send(writer, submission) for submission in submissions]
                await writer.drain()
                return [await future for future in futures]
        except (OSError, TimeoutError) as error:
            problem = f"the sequencer cannot be reached: {error or 'it does not answer'}"
            return [Outcome(OutcomeKind.UNAVAILABLE, problem=problem)] * len(submissions)

    async def is_reachable(self) -> bool:
        """Whether the sequencer takes connections."""
        try:
            async with asyncio.timeout(REACH_SECONDS_MAX):
                await self._open()
        except (OSError, TimeoutError):
            return False
        return True

    def _send(
        self, writer: asyncio.StreamWriter, submission: Submission
    ) -> asyncio.Future[Outcome]:
        self._number += 1
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._pending[self._number] = future
        writer.write(frame(self._number, encode_submission(submission)))
        return future

    async def _open(self) -> asyncio.StreamWriter:
        async with self._connecting:
            if self._writer is None:
                reader, self._writer = await asyncio.open_unix_connection(str(self._path))
                self._reading = asyncio.create_task(self._read(reader))
            return self._writer

    async def _read(self, reader: asyncio.StreamReader) -> None:
        """Hand out outcomes until the connection ends; those that wait then learn of it."""
        inward = bytearray()
        try:
            while data := await reader.read(RECEIVE_BYTES):
                inward += data
                for number, payload in split(inward):
                    future = self._pending.pop(number, None)
                    if future is not None and not future.done():
                        future.set_result(decode_outcome(payload))
        except OSError as error:
            _log.warning("sequencer_went_away", error=str(error))
        pending, self._pending, self._writer = self._pending, {}, None
        for future in pending.values():
            if not future.done():
                future.set_exception(SequencerAway("the sequencer went away"))

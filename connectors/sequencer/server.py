"""The sequencer's process: one thread, one socket, batches as they pile up during a commit."""

import gc
import selectors
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from connectors.sequencer.clock import ClockGuard
from connectors.sequencer.engine import BATCH_COMMANDS_MAX, Sequencer
from connectors.sequencer.intake import confirms_clock
from domain.journal import Fenced, JournalUnavailable
from domain.submission import Outcome, OutcomeKind, Submission
from domain.timespan import MICROSECONDS
from schemas.codec import Malformed
from schemas.wire import decode_submission, encode_outcome, frame, split

RECEIVE_BYTES = 1 << 20
WAITING_MAX = 20_000
"""Commands that wait at once; what comes beyond it is told to come back."""
IDLE_SECONDS = 0.5
GC_ALLOCATIONS = 1_000_000
"""So many more objects are made than dropped before cycles are looked for."""
RENEW_SECONDS = 1.5

_log = structlog.get_logger("sequencer")


@dataclass(slots=True)
class Peer:
    """One connection: what came in and what goes out."""

    socket: socket.socket
    inward: bytearray = field(default_factory=bytearray)
    outward: bytearray = field(default_factory=bytearray)


class SequencerServer:
    """Reads what arrived, decides and commits it as one batch, answers, and looks again.

    While a commit runs the next commands gather in the sockets: that is the group commit.
    """

    def __init__(self, sequencer: Sequencer, path: Path, guard: ClockGuard | None) -> None:
        """Listen on a Unix socket that only this user can reach."""
        self._sequencer = sequencer
        self._guard = guard
        self._selector = selectors.DefaultSelector()
        self._waiting: list[tuple[Peer, int, Submission]] = []
        self._stopped = False
        path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        path.chmod(0o600)
        self._listener.listen()
        self._listener.setblocking(False)  # noqa: FBT003 - the socket's own signature
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._renewed = time.monotonic()

    def stop(self) -> None:
        """End after the batch at hand."""
        self._stopped = True

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until stopped. Raises `Fenced` when another writer took the shard."""
        ready()
        while not self._stopped:
            self._receive(self._patience())
            self._serve()
            self._fire_timers()
            self._renew()
        self._sequencer.keep_state()
        self._sequencer.journal.release_lease()

    def _patience(self) -> float:
        """How long to wait for commands: until the next thing is due, and not for long."""
        if self._waiting:
            return 0.0
        due = self._sequencer.next_due()
        if due is None or self._guard is None:
            return IDLE_SECONDS
        return min(IDLE_SECONDS, max(0.0, (due - self._guard.now()) / MICROSECONDS))

    def _receive(self, patience: float) -> None:
        for key, events in self._selector.select(patience):
            if key.fileobj is self._listener:
                self._accept()
            elif events & selectors.EVENT_READ:
                self._read(key.data)
            if key.data is not None and events & selectors.EVENT_WRITE:
                self._flush(key.data)

    def _accept(self) -> None:
        accepted, _ = self._listener.accept()
        accepted.setblocking(False)  # noqa: FBT003 - the socket's own signature
        self._selector.register(accepted, selectors.EVENT_READ, Peer(accepted))

    def _read(self, peer: Peer) -> None:
        """Take in what a peer sent; a peer that is gone or talks nonsense is dropped."""
        try:
            data = peer.socket.recv(RECEIVE_BYTES)
            if not data:
                raise ConnectionResetError
            peer.inward += data
            for number, payload in split(peer.inward):
                self._enqueue(peer, number, decode_submission(payload))
        except BlockingIOError:
            return
        except (OSError, Malformed) as error:
            if isinstance(error, Malformed):
                _log.warning("peer_dropped", error=str(error))
            self._selector.unregister(peer.socket)
            peer.socket.close()

    def _enqueue(self, peer: Peer, number: int, submission: Submission) -> None:
        if len(self._waiting) >= WAITING_MAX:
            problem = f"{WAITING_MAX} commands are waiting; come back in a second"
            self._answer(peer, number, Outcome(OutcomeKind.UNAVAILABLE, problem=problem))
        else:
            self._waiting.append((peer, number, submission))

    def _serve(self) -> None:
        """Decide and commit what waits, as one batch."""
        if not self._waiting:
            return
        batch, self._waiting = (
            self._waiting[:BATCH_COMMANDS_MAX],
            self._waiting[BATCH_COMMANDS_MAX:],
        )
        problem = self._clock_problem()
        if problem:
            batch = [entry for entry in batch if not self._turn_away(entry, problem)]
        if not batch:
            return
        outcomes = self._sequencer.submit([submission for _, _, submission in batch])
        for (peer, number, submission), outcome in zip(batch, outcomes, strict=True):
            if confirms_clock(submission) and outcome.kind is OutcomeKind.ACCEPTED:
                self._believe_clock()
            self._answer(peer, number, outcome)

    def _clock_problem(self) -> str:
        if self._guard is None:
            return ""
        self._guard.now()
        ahead = self._guard.ahead_microseconds // MICROSECONDS
        if not ahead:
            return ""
        return f"the clock jumped {ahead} s ahead; an operator must confirm it"

    def _turn_away(self, entry: tuple[Peer, int, Submission], problem: str) -> bool:
        """Answer a command that cannot be decided now; the clock's confirmation still can."""
        peer, number, submission = entry
        if confirms_clock(submission):
            return False
        self._answer(peer, number, Outcome(OutcomeKind.UNAVAILABLE, problem=problem))
        return True

    def _believe_clock(self) -> None:
        if self._guard is not None:
            self._guard.confirm()

    def _answer(self, peer: Peer, number: int, outcome: Outcome) -> None:
        peer.outward += frame(number, encode_outcome(outcome))
        self._flush(peer)

    def _flush(self, peer: Peer) -> None:
        """Send what can be sent now; the rest when the peer reads on."""
        try:
            while peer.outward:
                sent = peer.socket.send(peer.outward)
                del peer.outward[:sent]
        except BlockingIOError:
            pass
        except OSError:
            peer.outward.clear()
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.outward else 0)
        if peer.socket.fileno() >= 0 and peer.socket.fileno() in self._selector.get_map():
            self._selector.modify(peer.socket, wanted, peer)

    def _fire_timers(self) -> None:
        """Let what is due happen; under a virtual clock only commands bring time."""
        if self._guard is not None and not self._clock_problem():
            self._sequencer.run_timers()

    def _renew(self) -> None:
        if time.monotonic() - self._renewed < RENEW_SECONDS:
            return
        try:
            self._sequencer.journal.renew_lease()
            self._renewed = time.monotonic()
        except JournalUnavailable as error:
            _log.warning("lease_not_renewed", error=str(error))


def settle_memory() -> None:
    """Let Python look for cycles rarely: what is in memory now stays, and little of ours is cyclic.

    Looking after every few allocations costs a quarter of a busy writer's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_ALLOCATIONS)


def serve_until_signalled(server: SequencerServer, ready: Callable[[], None]) -> int:
    """Run until SIGTERM or SIGINT; the exit status: 0 when told to stop, 1 when fenced."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.stop())
    settle_memory()
    try:
        server.run(ready)
    except Fenced as error:
        _log.error("fenced", error=str(error))
        return 1
    return 0

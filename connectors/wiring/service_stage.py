"""A stage for scenarios that is a whole service: its roles are processes, its commands come from outside.

What a story does goes through HTTP, or through the command line, with the token of whoever does it;
what came of it is read from the log.
"""

import inspect
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from connectors.client.http import Api, Refused, Unreachable
from connectors.http.commanding import BATCH_COMMANDS_MAX
from connectors.http.verbs import ROUTES
from connectors.http.virtual_time import ADVANCE
from connectors.postgres.journal import JournalReader
from connectors.postgres.recorded import recorded
from connectors.reconciler.loop import PRINCIPAL as RECONCILER
from connectors.running.files import Service, write_service
from connectors.sequencer.opening import replay
from connectors.tokens.tokens import Tokens, hash_of
from domain.facts import FACTS
from domain.ledger import Ledger
from domain.principal import Principal
from domain.record import Recorded
from domain.refusals import Offer, Reason
from domain.submission import TICK, Outcome, OutcomeFact, OutcomeKind, RefusalTold, Submission
from domain.timespan import Instant
from schemas.image import image_of
from schemas.json_form import instant_of, instant_text, parse, render
from schemas.registry import registry

READY_SECONDS_MAX = 120
STOP_SECONDS_MAX = 30
ANSWER_SECONDS_MAX = 120

_PATHS = {route.command: route.path for route in ROUTES}


class Face(Protocol):
    """A way into the service for one principal."""

    def send(self, at: Instant, asked: Sequence[tuple[str, Any]]) -> list[dict[str, Any]]:
        """The answers to commands under their keys, as JSON; refusals as problems."""
        ...

    def advance(self, at: Instant) -> None:
        """Bring the clock on."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class OverHttp:
    """Commands as calls: one alone by its route, several as a batch."""

    def __init__(self, url: str, token: str) -> None:
        """With somebody's token."""
        self._api = Api(url, token)

    def send(self, at: Instant, asked: Sequence[tuple[str, Any]]) -> list[dict[str, Any]]:
        """The answers, as JSON."""
        self._api.at = instant_text(at)
        if len(asked) == 1:
            ((key, command),) = asked
            body = render(command)
            return [self._post(_PATHS[type(command)].format(**body), body, key)]
        entries = [
            {"command": type(command).__name__, "key": key, "body": render(command)}
            for key, command in asked
        ]
        told = self._post("/v1/batch", {"commands": entries}, "batch")
        return told["outcomes"] if "outcomes" in told else [told] * len(asked)

    def advance(self, at: Instant) -> None:
        """Bring the clock on."""
        self._api.at = instant_text(at)
        self._api.post(ADVANCE, {})

    def close(self) -> None:
        """Let go of the connection."""
        self._api.close()

    def _post(self, path: str, body: dict[str, Any], key: str) -> dict[str, Any]:
        try:
            return self._api.post(path, body, key)
        except Refused as error:
            return error.problem


class OnCommandLine:
    """Commands as processes, each `gpuledger submit`."""

    def __init__(self, url: str, token: str) -> None:
        """With somebody's token."""
        self._words = [sys.executable, "-m", "connectors.cli", "--json", "--server", url]
        self._environment = os.environ | {"GPULEDGER_TOKEN": token}

    def send(self, at: Instant, asked: Sequence[tuple[str, Any]]) -> list[dict[str, Any]]:
        """The answers, as JSON."""
        return [
            self._run(
                at, "submit", type(command).__name__, json.dumps(render(command)), "--key", key
            )
            for key, command in asked
        ]

    def advance(self, at: Instant) -> None:
        """Bring the clock on."""
        self._run(at, "clock", "advance")

    def close(self) -> None:
        """Nothing is kept."""

    def _run(self, at: Instant, *words: str) -> dict[str, Any]:
        done = subprocess.run(  # noqa: S603 - our own
            [*self._words, "--at", instant_text(at), *words],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS_MAX,
            check=False,
        )
        if done.returncode > 1:
            raise RuntimeError(f"gpuledger {words[0]} ended with {done.returncode}: {done.stderr}")
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


FACES: Mapping[str, Callable[[str, str], Face]] = {"http": OverHttp, "cli": OnCommandLine}
"""How a story may be told to a service."""


class ServiceStage:
    """A sequencer and an HTTP face on a virtual clock, each a process."""

    def __init__(self, folder: Path, service: Service, faces: Mapping[Principal, Face]) -> None:
        """Over a folder that describes the service, with a way in for each principal."""
        self._folder = folder
        self._service = service
        self._faces = faces
        self._roles: dict[str, subprocess.Popen[bytes]] = {}
        self._reader = JournalReader(service.dsn)
        self._ledger = Ledger(shard=0)
        self._seq = self._folded = 0

    def start(self) -> None:
        """Start the roles, and wait until they decide."""
        for role in ("sequencer", "http"):
            self._spawn(role)
        self._await_ready()

    def stop(self) -> None:
        """End the roles."""
        for process in self._roles.values():
            process.terminate()
        for process in self._roles.values():
            process.wait(STOP_SECONDS_MAX)
        self._reader.close()

    def restart(self) -> None:
        """The writer is killed, and another one takes over when its lease is out."""
        self._roles["sequencer"].kill()
        self._roles["sequencer"].wait()
        Path(self._service.socket).unlink(missing_ok=True)
        self._spawn("sequencer")
        self._await_ready()

    def submit(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """Durable outcomes, as the face told them."""
        outcomes: list[Outcome] = []
        for (who, at), run in groupby(submissions, key=lambda each: (each.principal, each.at)):
            assert at is not None, "a story's commands say when"
            asked = list(run)
            if asked[0].type == TICK:
                self._faces[who].advance(at)
                outcomes += [Outcome(OutcomeKind.NO_EFFECT)] * len(asked)
                continue
            for first in range(0, len(asked), BATCH_COMMANDS_MAX):
                part = asked[first : first + BATCH_COMMANDS_MAX]
                commands = [(s.key, registry().decode(s.type, s.body)) for s in part]
                outcomes += [outcome_of(told) for told in self._faces[who].send(at, commands)]
        return outcomes

    def new_facts(self) -> list[Recorded]:
        """What was recorded since it was last asked."""
        found = [recorded(event, registry()) for event in self._reader.read_all(self._seq)]
        self._seq += len(found)
        return found

    def ledger(self) -> Ledger:
        """The state, folded from the log."""
        behind = self._reader.read_all(self._folded)
        self._folded = replay(behind, registry(), self._ledger, self._folded)
        return self._ledger

    def next_due(self) -> Instant | None:
        """When something falls due by itself."""
        return self.ledger().timers.next_due()

    def is_replayable(self) -> bool:
        """Whether a replay of the log ends in the bytes that were folded step by step."""
        ledger = Ledger(shard=0)
        replay(self._reader.read_all(0), registry(), ledger, 0)
        return image_of(ledger) == image_of(self.ledger())

    def _spawn(self, role: str) -> None:
        command = [sys.executable, "-m", "connectors.cli", "--data", str(self._folder)]
        self._roles[role] = subprocess.Popen(  # noqa: S603 - our own
            [*command, "serve", role, "--virtual"], stderr=subprocess.DEVNULL
        )

    def _await_ready(self) -> None:
        api = Api(self._service.url, "")
        until = time.monotonic() + READY_SECONDS_MAX
        while not (Path(self._service.socket).exists() and _is_healthy(api)):
            for role, process in self._roles.items():
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"{role} did not start")
            time.sleep(0.02)
        api.close()


def _is_healthy(api: Api) -> bool:
    try:
        return bool(api.get("/v1/health")["status"] == "ok")
    except (Refused, Unreachable):
        return False


@contextmanager
def service_stage(
    folder: Path, dsn: str, principals: Iterable[Principal], face: str
) -> Iterator[ServiceStage]:
    """A service over an empty database that has been migrated; `face` is one of `FACES`."""
    tokens, issued = Tokens({}), {}
    for who in {*principals, RECONCILER}:
        issued[who] = tokens.issue(who.id, who.role, who.tenant_id)
    tokens.write(folder / "tokens.json")
    for secret in ("fingerprint", "checkpoint"):
        (folder / f"{secret}.secret").write_text(hash_of(issued[RECONCILER]))
    with socket.create_server(("127.0.0.1", 0)) as probe:
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    service = Service(dsn, str(folder / "sequencer.sock"), url, os.getpid(), {})
    write_service(folder, service)
    with ExitStack() as stack:
        faces = {who: FACES[face](url, token) for who, token in issued.items()}
        for each in faces.values():
            stack.callback(each.close)
        stage = ServiceStage(folder, service, faces)
        stack.callback(stage.stop)
        stage.start()
        yield stage


def outcome_of(told: Mapping[str, Any]) -> Outcome:
    """An answer in JSON as the outcome that it tells of."""
    if told.get("reason") and "facts" in told:
        offers = tuple(
            Offer(instant_of(each["start"]), instant_of(each["end"]))
            for each in told.get("offers", ())
        )
        reason = Reason[told["reason"].upper().replace("-", "_")]
        refusal = RefusalTold(reason, told["facts"], offers)
        return Outcome(OutcomeKind.REFUSED, told.get("command_id", ""), refusal=refusal)
    if "outcome" not in told or "facts" not in told:
        detail = str(told.get("detail", told))
        return Outcome(OutcomeKind(told.get("outcome", OutcomeKind.REJECTED)), problem=detail)
    return Outcome(
        OutcomeKind(told["outcome"]),
        told["command_id"],
        told["seq_from"],
        told["seq_to"],
        tuple(_fact(each) for each in told["facts"]),
        is_repeat=told["repeat"],
    )


def _fact(told: Mapping[str, Any]) -> OutcomeFact:
    kind = FACTS[told["type"].split(".")[0]]
    names = inspect.get_annotations(kind)
    values = {name: told[name] for name in names}
    _, body = registry().encode(parse(kind, values))
    return OutcomeFact(told["seq"], told["type"], told["stream"], told["version"], Instant(0), body)

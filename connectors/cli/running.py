"""Verbs that run: dev, serve, migrate, doctor."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from connectors.cli.console import (
    NOT_REACHABLE,
    REFUSED,
    USED_WRONGLY,
    err,
    fail,
    folder,
    options,
    tell,
)
from connectors.client.http import Api, Refused, Unreachable
from connectors.embedded.folder import DataFolder, FolderRefused, read_secret
from connectors.running.files import Service, forget_service, read_service, write_service
from connectors.running.roles import KAFKA_ROLES, ROLES
from connectors.running.supervised import SUPERVISOR, end_with_supervisor
from connectors.tokens.tokens import Tokens
from connectors.wiring.logs import log_as_lines

READY_SECONDS_MAX = 120
STOP_SECONDS_MAX = 20
PORT_SECONDS_MAX = 3
RESTART_SECONDS_MIN, RESTART_SECONDS_MAX = 0.2, 15.0
"""How long a role that ended by itself rests before it is started again."""
STEADY_SECONDS = 5.0
"""A role that lasted so long rests only shortly when it ends."""
FLEET_NODES = 16
TENANTS = ("team-a", "team-b")
TRY = (
    "status",
    "reserve --gpus 8 --for 4h --tenant team-a",
    "reserve --nodes 16 --for 2h --tenant team-b      # refused, with the windows that would fit",
    "node fail node-01                                # its holder moves",
    "why ID                                           # the story of a reservation",
)


def _free_port(port: int) -> int:
    """A port that can be listened on; 0 means any.

    Roles of a killed run need a moment to notice it, so a port that is in use is looked at again.
    """
    until = time.monotonic() + PORT_SECONDS_MAX
    while True:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                if time.monotonic() > until:
                    problem = f"port {port} is in use: {error.strerror}"
                    fail(REFUSED, problem, "give another with --port")
            else:
                return int(probe.getsockname()[1])
        time.sleep(0.1)


def dev(
    port: Annotated[int, typer.Option(help="0 takes any free one")] = 8420,
    dsn: Annotated[str, typer.Option(help="a PostgreSQL of yours; embedded when not given")] = "",
    kafka: Annotated[
        bool, typer.Option("--kafka", help="with a local broker, unless KAFKA_BOOTSTRAP_SERVERS")
    ] = False,
) -> None:
    """Run the whole service here: PostgreSQL, the ledger, a simulated fleet, HTTP.

    Where a broker is named in the environment, or started by `--kafka`, Kafka's roles run too.
    """
    from connectors.embedded.server import PostgresRefused
    from connectors.kafka.broker import BrokerRefused
    from connectors.wiring import stores

    begun = time.monotonic()
    log_as_lines()
    port = _free_port(port)
    try:
        data = DataFolder.open(folder(), clock="wall")
    except FolderRefused as error:
        fail(REFUSED, str(error))
    server = broker = None
    try:
        if kafka and not os.environ.get("KAFKA_BOOTSTRAP_SERVERS"):
            broker = stores.local_broker(data, _tell)
            os.environ["KAFKA_BOOTSTRAP_SERVERS"] = broker.start()
        if not dsn:
            server = stores.embedded(data, _tell)
            dsn = server.start()
        stores.prepare(dsn)
        if broker is not None:
            broker.wait()
        _run(data, dsn, port, begun)
    except (PostgresRefused, BrokerRefused) as error:
        fail(NOT_REACHABLE, str(error))
    finally:
        forget_service(data.path)
        if broker is not None:
            broker.stop()
        if server is not None:
            server.stop()
        data.close()


def _tell(what: str) -> None:
    err.print(f"... {what}", style="dim")


def _run(data: DataFolder, dsn: str, port: int, begun: float) -> None:
    """The roles as processes, until a signal comes or one of them cannot be kept up."""
    service = _service(data, dsn, port)
    stopped = _signalled()
    roles = (*ROLES, *_kafka_roles())
    children = {role: _spawn(role, data.path) for role in roles}
    try:
        _await_ready(service, children, stopped)
        if not stopped():
            _seed(Api(service.url, service.tokens["operator"]))
            _greet(service, time.monotonic() - begun)
        _watch(data.path, children, stopped)
    finally:
        _stop(children)


def _kafka_roles() -> tuple[str, ...]:
    """The roles that a configured broker adds, once its topics are there."""
    if not os.environ.get("KAFKA_BOOTSTRAP_SERVERS"):
        return ()
    from connectors.wiring import kafka

    try:
        kafka.create_topics(None)
    except kafka.KafkaError as error:
        fail(NOT_REACHABLE, f"Kafka says: {error}", "is KAFKA_BOOTSTRAP_SERVERS right?")
    return kafka.ROLES


def _service(data: DataFolder, dsn: str, port: int) -> Service:
    """Fresh tokens, one of each role, and the place where all of it is found."""
    from connectors.embedded.server import EmbeddedPostgres

    tokens = Tokens.read(data.path / "tokens.json")
    issued = tokens.issue_to_all(data.secret("principals"), TENANTS)
    tokens.write(data.path / "tokens.json")
    data.secret("fingerprint")
    data.secret("checkpoint")
    path = str(EmbeddedPostgres(data.path, "").socket)
    Path(path).mkdir(mode=0o700, exist_ok=True)
    service = Service(
        dsn, f"{path}/sequencer.sock", f"http://127.0.0.1:{port}", os.getpid(), issued
    )
    write_service(data.path, service)
    return service


def _signalled() -> Callable[[], bool]:
    stopped = [False]

    def stop(*_: object) -> None:
        stopped[0] = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return lambda: stopped[0]


def _spawn(role: str, path: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "connectors.cli", "--data", str(path), "serve", role]
    environment = os.environ | {SUPERVISOR: str(os.getpid())}
    return subprocess.Popen(command, start_new_session=True, env=environment)  # noqa: S603 - our own


def _await_ready(
    service: Service, children: dict[str, subprocess.Popen[bytes]], stopped: Callable[[], bool]
) -> None:
    """Wait until the ledger decides and answers."""
    api = Api(service.url, "")
    until = time.monotonic() + READY_SECONDS_MAX
    told = False
    while not stopped():
        for role, child in children.items():
            if role != "reconciler" and child.poll() is not None:
                fail(NOT_REACHABLE, f"{role} ended with status {child.returncode}")
        try:
            if Path(service.socket).exists() and api.get("/v1/health")["status"] == "ok":
                return
        except (Unreachable, Refused):
            pass
        if time.monotonic() > until:
            fail(NOT_REACHABLE, f"not ready after {READY_SECONDS_MAX} s")
        if not told and time.monotonic() > until - READY_SECONDS_MAX + 6:
            _tell("compiling the placer (first start only)")
            told = True
        time.sleep(0.05)


def _seed(api: Api) -> None:
    """A simulated fleet and two teams, the first time."""
    entries: list[dict[str, Any]] = [
        {"command": "OpenPool", "body": {"pool_id": "main", "site": "here"}}
    ]
    for number in range(1, FLEET_NODES + 1):
        rack = f"rack-{(number - 1) // 4 + 1}"
        body = {
            "pool_id": "main",
            "node_id": f"node-{number:02}",
            "model": "H100",
            "gpus": 8,
            "gpu_memory_mib": 81_920,
            "levels": [{"level": "rack", "group": rack}],
        }
        entries.append({"command": "JoinNode", "body": body})
    for tenant in TENANTS:
        entries.append({"command": "RegisterTenant", "body": {"tenant_id": tenant}})
        quota = {"tenant_id": tenant, "pool_id": "main", "nominal_milli": 128_000}
        entries.append({"command": "GrantQuota", "body": quota})
    for at, entry in enumerate(entries):
        entry["key"] = f"dev-fleet-{at}"
    body = {"commands": entries}
    api.post("/v1/batch?brief=true", body, "dev-fleet")


def _greet(service: Service, seconds: float) -> None:
    """Where it is, and what to try first."""
    lines = [service.url, *(f"  ./gpuledger {line}" for line in TRY)]
    print("\n".join(lines), flush=True)  # noqa: T201 - the first lines that a newcomer reads
    _tell(f"ready after {seconds:.1f} s; tokens are in {folder()}/service.json; Ctrl-C stops")


def _watch(
    path: Path, children: dict[str, subprocess.Popen[bytes]], stopped: Callable[[], bool]
) -> None:
    """Start a role again that ended by itself, later and later while it ends at once again."""
    begun = dict.fromkeys(children, time.monotonic())
    pauses = dict.fromkeys(children, RESTART_SECONDS_MIN)
    due: dict[str, float] = {}
    while not stopped():
        time.sleep(0.1)
        now = time.monotonic()
        for role, child in list(children.items()):
            if child.poll() is None or stopped():
                continue
            if role not in due:
                lasted = now - begun[role] > STEADY_SECONDS
                pauses[role] = RESTART_SECONDS_MIN if lasted else 2 * pauses[role]
                pause = min(pauses[role], RESTART_SECONDS_MAX)
                due[role] = now + pause
                _tell(f"{role} ended with status {child.returncode}; again in {pause:g} s")
            elif now >= due[role]:
                del due[role]
                begun[role] = now
                children[role] = _spawn(role, path)


def _stop(children: dict[str, subprocess.Popen[bytes]]) -> None:
    for child in children.values():
        if child.poll() is None:
            child.terminate()
    until = time.monotonic() + STOP_SECONDS_MAX
    for child in children.values():
        try:
            child.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def serve(
    role: Annotated[str, typer.Argument(help=", ".join((*ROLES, *KAFKA_ROLES)))],
    virtual: Annotated[bool, typer.Option("--virtual", help="time is what callers say")] = False,
    host: Annotated[str, typer.Option(help="the address that http listens on")] = "127.0.0.1",
) -> None:
    """Run one role of a service that `dev` runs or `init` described."""
    end_with_supervisor()
    log_as_lines()
    service = read_service(folder())
    if service is None:
        fail(
            NOT_REACHABLE,
            f"no service is described in {folder()}",
            "'gpuledger dev' or 'gpuledger init' makes one",
        )
        return
    try:
        status = _serve(role, service, host, virtual=virtual)
    except FolderRefused as error:
        fail(REFUSED, str(error), "'gpuledger init' makes what is missing")
        return
    raise typer.Exit(status)


def _serve(role: str, service: Service, host: str, *, virtual: bool) -> int:
    """A role until it is told to stop; its exit status. Raises `FolderRefused`."""
    from connectors.wiring import roles

    path = folder()
    match role:
        case "sequencer":
            secret = read_secret(path, "fingerprint")
            return roles.serve_sequencer(service, secret, virtual=virtual)
        case "follower":
            return roles.serve_follower(service)
        case "reconciler":
            return roles.serve_reconciler(service)
        case "planner":
            return roles.serve_planner(service)
        case "http":
            return roles.serve_http(service, path, host, virtual=virtual)
        case name if name in KAFKA_ROLES:
            return _serve_kafka(name, service, path)
        case _:
            known = ", ".join((*ROLES, *KAFKA_ROLES))
            raise typer.BadParameter(f"{role!r} is no role; there are {known}")


def _serve_kafka(role: str, service: Service, path: Path) -> int:
    """A role that speaks with Kafka; its exit status."""
    from connectors.wiring import kafka

    try:
        return kafka.serve(role, service, path)
    except kafka.KafkaNotConfigured as error:
        fail(USED_WRONGLY, str(error))
    except (kafka.Halted, kafka.IngressHalted) as error:
        fail(REFUSED, f"{role} has halted: {error}", "`gpuledger doctor` says it, too")
    return REFUSED


def migrate(dsn: Annotated[str, typer.Argument(help="the database")]) -> None:
    """Bring a database up to this release; safe to run twice."""
    from connectors.wiring import stores

    names = stores.prepare(dsn)
    tell({"applied": names}, [{"applied": name} for name in names], ("applied",))


def doctor() -> None:
    """Say what is configured, reachable and missing."""
    rows = [{"what": "data folder", "state": str(folder()), "ok": folder().exists()}]
    service = read_service(folder())
    rows.append(
        {"what": "service", "state": service.url if service else "none", "ok": service is not None}
    )
    if service is not None:
        api = Api(service.url, service.tokens.get("operator", ""))
        try:
            health = api.get("/v1/health")
            rows.append(
                {"what": "ledger", "state": f"{health['status']}, seq {health['head']}", "ok": True}
            )
            known = api.get("/v1/projections")
            for relay in known["relay"]:
                behind = f"{relay['lag']} events, {relay['lag_seconds']:.1f} s behind"
                state = relay["halted"] or behind
                rows.append({"what": "relay to Kafka", "state": state, "ok": not relay["halted"]})
            for p in known["projections"]:
                lag = health["head"] - p["seq"]
                state = p["poison"] or f"{lag} events behind"
                rows.append(
                    {"what": f"projection {p['name']}", "state": state, "ok": not p["poison"]}
                )
        except (Unreachable, Refused) as error:
            rows.append({"what": "ledger", "state": str(error), "ok": False})
    tell({"checks": rows}, rows, ("what", "state", "ok"))
    if not options.json and service is not None:
        err.print(
            "one PostgreSQL without a synchronous standby: its disk is the only copy", style="dim"
        )
    if not all(row["ok"] for row in rows):
        raise typer.Exit(REFUSED)

"""A real Kafka broker of our own: one Java process in KRaft mode, private, stopped with us.

Its jars come from Maven Central by `mvn`, once, into the user's cache folder.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

KAFKA_VERSION = "4.4.0"
LOG4J_VERSION = "2.25.1"
JAVA_VERSION_MIN = 17
HEAP = "512m"
START_SECONDS_MAX = 90
STOP_SECONDS_MAX = 30
FETCH_SECONDS_MAX = 600
CLUSTER_ID = "Z3B1bGVkZ2VyLWxvY2FsMA"  # 16 bytes in base64: the name of every local cluster

_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>gpuledger</groupId><artifactId>broker</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>{KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-slf4j-impl</artifactId>
      <version>{LOG4J_VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""

_LOG4J = """<Configuration status="warn">
  <Appenders><Console name="out"><PatternLayout pattern="%d %p %m (%c)%n"/></Console></Appenders>
  <Loggers><Root level="warn"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
"""


class BrokerRefused(Exception):
    """The local broker cannot run; the words say why and what to do."""


def jars(tell: Callable[[str], None] = lambda _: None) -> Path:
    """The folder with the broker's jars, fetched when they are not there yet.

    Raises `BrokerRefused` when Java or Maven is missing, or nothing can be fetched.
    """
    _java()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpuledger"
    folder = cache / f"kafka-{KAFKA_VERSION}"
    if folder.exists():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise BrokerRefused(
            "Maven fetches Kafka's jars and is not installed; apt-get install maven, "
            "or name a broker with KAFKA_BOOTSTRAP_SERVERS"
        )
    tell(f"fetching Apache Kafka {KAFKA_VERSION} (43 MB, once)")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        fetched = Path(scratch) / "jars"
        (Path(scratch) / "pom.xml").write_text(_POM)
        command = [maven, "--quiet", "--batch-mode", "dependency:copy-dependencies"]
        done = subprocess.run(  # noqa: S603 - a program found on the path
            [*command, f"-DoutputDirectory={fetched}"],
            cwd=scratch,
            capture_output=True,
            text=True,
            check=False,
            timeout=FETCH_SECONDS_MAX,
        )
        if done.returncode:
            raise BrokerRefused(f"Kafka's jars could not be fetched: {done.stdout[-500:].strip()}")
        try:
            fetched.rename(folder)
        except OSError:
            # Somebody else fetched them meanwhile.
            if not folder.exists():
                raise
    return folder


def _java() -> str:
    found = shutil.which("java")
    if found is None:
        raise BrokerRefused(
            f"Kafka needs Java {JAVA_VERSION_MIN} or newer; apt-get install default-jre-headless, "
            "or name a broker with KAFKA_BOOTSTRAP_SERVERS"
        )
    return found


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listened on a moment ago."""
    found: list[int] = []
    held = [socket.socket() for _ in range(count)]
    for each in held:
        with closing(each):
            each.bind(("127.0.0.1", 0))
            found.append(each.getsockname()[1])
    return found


@dataclass(frozen=True, slots=True)
class Place:
    """One broker's place in its cluster: its number and its two ports on the loopback."""

    node_id: int
    port: int
    controller_port: int


class LocalBroker:
    """One broker, data and log below a folder of its own."""

    def __init__(
        self,
        folder: Path,
        *,
        cluster: Sequence[Place] = (),
        node_id: int = 1,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """A broker to be; alone unless the places of a whole cluster are given."""
        self._folder = folder.resolve()
        self._node_id = node_id
        self._given = tuple(cluster)
        self._cluster = self._given
        self._tell = tell
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Where clients reach it, once it was started."""
        return f"127.0.0.1:{self._place.port}"

    @property
    def _place(self) -> Place:
        return next(place for place in self._cluster if place.node_id == self._node_id)

    def start(self) -> str:
        """Start the broker on its data, made first if there is none; where clients reach it.

        A broker that was stopped comes back at the same port. Raises `BrokerRefused`.
        """
        classpath = jars(self._tell)
        if not self._cluster:
            self._cluster = (Place(self._node_id, *free_ports(2)),)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._stop_orphan()
        self._configure()
        if not (self._folder / "data" / "meta.properties").exists():
            self._format(classpath)
        with (self._folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - a program found on the path
                self._command(classpath, "kafka.Kafka", str(self._folder / "server.properties")),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        (self._folder / "broker.pid").write_text(str(self._process.pid))
        return self.bootstrap_servers

    def wait(self) -> str:
        """Wait until the broker answers; where clients reach it. Raises `BrokerRefused`."""
        until = time.monotonic() + START_SECONDS_MAX
        while True:
            assert self._process is not None, "start comes first"
            if self._process.poll() is not None:
                log = (self._folder / "broker.log").read_text(errors="replace")
                raise BrokerRefused(f"Kafka did not start: {log[-800:].strip()}")
            with closing(socket.socket()) as probe:
                probe.settimeout(1)
                if probe.connect_ex(("127.0.0.1", self._place.port)) == 0:
                    return self.bootstrap_servers
            if time.monotonic() > until:
                self.kill()
                raise BrokerRefused(f"Kafka did not answer within {START_SECONDS_MAX} seconds")
            time.sleep(0.1)

    def _command(self, classpath: Path, *words: str) -> list[str]:
        return [
            _java(),
            f"-Xmx{HEAP}",
            f"-Dlog4j2.configurationFile={self._folder / 'log4j2.xml'}",
            "-cp",
            f"{classpath}/*",
            *words,
        ]

    def _configure(self) -> None:
        place, many = self._place, len(self._cluster)
        voters = ",".join(f"{p.node_id}@127.0.0.1:{p.controller_port}" for p in self._cluster)
        settings = {
            "process.roles": "broker,controller",
            "node.id": place.node_id,
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://127.0.0.1:{place.port},"
            f"CONTROLLER://127.0.0.1:{place.controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{place.port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self._folder / "data",
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": 0,
            "offsets.topic.replication.factor": many,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": many,
            "transaction.state.log.min.isr": min(2, many),
            "transaction.state.log.num.partitions": 1,
            "share.coordinator.state.topic.replication.factor": many,
            "share.coordinator.state.topic.min.isr": min(2, many),
        }
        words = "".join(f"{name}={value}\n" for name, value in settings.items())
        (self._folder / "server.properties").write_text(words)
        (self._folder / "log4j2.xml").write_text(_LOG4J)

    def _format(self, classpath: Path) -> None:
        config = str(self._folder / "server.properties")
        words = ("format", "--cluster-id", CLUSTER_ID, "--config", config)
        done = subprocess.run(  # noqa: S603 - a program found on the path
            self._command(classpath, "kafka.tools.StorageTool", *words),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BrokerRefused(f"Kafka's storage could not be made: {done.stderr.strip()[-500:]}")

    def _stop_orphan(self) -> None:
        """Stop a broker on this data that outlived the process that started it."""
        pid_file = self._folder / "broker.pid"
        if not pid_file.exists():
            return
        pid = int(pid_file.read_text() or "0")
        words = str(self._folder / "server.properties").encode()
        command = Path(f"/proc/{pid}/cmdline")
        if pid and command.exists() and words in command.read_bytes():
            self._tell("stopping a Kafka broker that an earlier run left behind")
            os.kill(pid, 15)
            until = time.monotonic() + STOP_SECONDS_MAX
            while command.exists() and time.monotonic() < until:
                time.sleep(0.05)
        pid_file.unlink()

    def stop(self) -> None:
        """Stop it in good order; stopping twice is once."""
        self._end(gently=True)

    def kill(self) -> None:
        """Stop it as a power cut would."""
        self._end(gently=False)

    def _end(self, *, gently: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if gently:
            process.terminate()
            try:
                process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
        else:
            process.kill()
        process.wait()
        (self._folder / "broker.pid").unlink(missing_ok=True)

    def __enter__(self) -> Self:
        """Started, and it answers."""
        self.start()
        self.wait()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Stopped."""
        self.stop()

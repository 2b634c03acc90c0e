"""The topics: what each must be so that no event is lost, made so and checked."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import structlog
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic
from kafka.errors import TopicAlreadyExistsError

from connectors.kafka.settings import KafkaSettings

COMMANDS = "commands.v1"
EVENTS = "events.v1"
OUTCOMES = "outcomes.v1"
CHARGES = "charges.v1"
CHECKPOINTS = "checkpoints.v1"
DEAD_LETTERS = "commands.dlq.v1"

COMMAND_PARTITIONS = 4
FOR_EVER = -1
COMMAND_RETENTION_DAYS_MIN = 7
OUTCOME_RETENTION_DAYS = 30
DEAD_LETTER_RETENTION_DAYS = 30
REPLICAS_WANTED = 3
MESSAGE_BYTES_MAX = 1_048_588
_DAY_MS = 86_400_000

_log = structlog.get_logger("kafka")


class TopicsUnsafe(Exception):
    """A topic is missing or can lose records; the words name each fault and its remedy."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as it must be: partitions exactly, retention at least, for ever when -1."""

    name: str
    partitions: int
    retention_ms: int
    about: str

    def configs(self, replicas: int) -> Mapping[str, str]:
        """Its settings when it is made on that many replicas."""
        return {
            "cleanup.policy": "delete",
            "retention.ms": str(self.retention_ms),
            "retention.bytes": "-1",
            "min.insync.replicas": str(min(2, replicas)),
            "unclean.leader.election.enable": "false",
            "max.message.bytes": str(MESSAGE_BYTES_MAX),
        }


def topics(shards: int = 1) -> tuple[Topic, ...]:
    """Every topic, without the prefix; the events have one partition per shard."""
    week = COMMAND_RETENTION_DAYS_MIN * _DAY_MS
    return (
        Topic(COMMANDS, COMMAND_PARTITIONS, week, "commands of upstream services"),
        Topic(EVENTS, shards, FOR_EVER, "every event, in order"),
        Topic(OUTCOMES, shards, OUTCOME_RETENTION_DAYS * _DAY_MS, "what commands came to"),
        Topic(CHARGES, 1, FOR_EVER, "charges of closed periods"),
        Topic(CHECKPOINTS, 1, FOR_EVER, "signed checkpoints of the log"),
        Topic(DEAD_LETTERS, 1, DEAD_LETTER_RETENTION_DAYS * _DAY_MS, "quarantined commands"),
    )


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as it is: nothing but its name when it is not there."""

    name: str
    partitions: int = 0
    replicas: int = 0
    configs: Mapping[str, str] | None = None

    @property
    def exists(self) -> bool:
        """Whether the brokers know it."""
        return self.configs is not None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a topic; a grave one can lose records or break the order."""

    topic: str
    words: str
    is_grave: bool


@contextmanager
def admin(settings: KafkaSettings) -> Iterator[KafkaAdminClient]:
    """A client that makes and describes topics, closed at the end."""
    client = KafkaAdminClient(**settings.client)
    try:
        yield client
    finally:
        client.close()


def create(settings: KafkaSettings, *, replicas: int | None = None) -> list[str]:
    """Make the topics that are not there, with a replica on up to three brokers; their names.

    Raises kafka-python's `KafkaError` when the brokers refuse.
    """
    made: list[str] = []
    with admin(settings) as client:
        count = replicas or min(REPLICAS_WANTED, len(client.describe_cluster()["brokers"]))
        for topic in topics():
            name = settings.prefix + topic.name
            wanted = NewTopic(
                name=name,
                num_partitions=topic.partitions,
                replication_factor=count,
                topic_configs=dict(topic.configs(count)),
            )
            try:
                client.create_topics([wanted], wait_for_metadata=True)
            except TopicAlreadyExistsError:
                continue
            made.append(name)
    return made


def states(settings: KafkaSettings) -> dict[str, TopicState]:
    """How each topic is, by its name without the prefix."""
    names = {settings.prefix + topic.name: topic.name for topic in topics()}
    found: dict[str, TopicState] = {}
    with admin(settings) as client:
        for described in client.describe_topics(list(names)):
            full = described["name"]
            if described["error_code"]:
                found[names[full]] = TopicState(full)
                continue
            resource = ConfigResource(ConfigResourceType.TOPIC, full)
            configs = client.describe_configs([resource], config_filter="all")["topic"][full]
            found[names[full]] = TopicState(
                full,
                len(described["partitions"]),
                min(len(each["replica_nodes"]) for each in described["partitions"]),
                {name: each["value"] for name, each in configs.items()},
            )
    return found


def topic_id(settings: KafkaSettings, name: str) -> str:
    """The id that the brokers gave a topic: one that is made anew gets another."""
    with admin(settings) as client:
        (described,) = client.describe_topics([settings.prefix + name])
    return str(described["topic_id"])


def check(settings: KafkaSettings) -> list[Finding]:
    """What is wrong with the topics, and what is merely weak."""
    found = states(settings)
    return [finding for topic in topics() for finding in findings(topic, found[topic.name])]


def must_be_safe(settings: KafkaSettings, names: Iterable[str]) -> None:
    """Pass only where none of these topics can lose records, or that is accepted.

    Raises `TopicsUnsafe`.
    """
    full = {settings.prefix + name for name in names}
    grave = [f for f in check(settings) if f.is_grave and f.topic in full]
    faults = "; ".join(f"{f.topic}: {f.words}" for f in grave)
    if grave and settings.accepts_loss:
        _log.warning("topics_unsafe", faults=faults)
    elif grave:
        raise TopicsUnsafe(f"{faults} (`gpuledger topics create` makes what is missing)")


def findings(topic: Topic, state: TopicState) -> list[Finding]:
    """What differs between a topic as it must be and as it is."""
    if state.configs is None:
        return [Finding(state.name, "does not exist", is_grave=True)]
    configs, found = state.configs, list[Finding]()

    def says(words: str, *, grave: bool = True) -> None:
        found.append(Finding(state.name, words, grave))

    if state.partitions != topic.partitions and topic.name != COMMANDS:
        says(f"has {state.partitions} partitions, must have {topic.partitions}")
    if configs["cleanup.policy"] != "delete":
        says(f"cleanup.policy is {configs['cleanup.policy']}: compaction drops records")
    retention = int(configs["retention.ms"])
    if retention != FOR_EVER and (topic.retention_ms == FOR_EVER or retention < topic.retention_ms):
        says(f"retention.ms is {retention}, must be {topic.retention_ms} or longer")
    if int(configs["retention.bytes"]) != FOR_EVER:
        says(f"retention.bytes is {configs['retention.bytes']}: it drops old records")
    if configs["unclean.leader.election.enable"] != "false":
        says("unclean.leader.election.enable is on: a leader without the records may be elected")
    if state.replicas < REPLICAS_WANTED:
        says(f"has {state.replicas} replica(s): their disks are the only copies", grave=False)
    elif int(configs["min.insync.replicas"]) < 2:
        says("min.insync.replicas is below 2: one disk may hold the only copy of a record")
    return found

"""Kafka's parts put together from the environment."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kafka.errors import KafkaError

from connectors.client.gateway import Gateway
from connectors.embedded.folder import read_secret
from connectors.kafka import topics
from connectors.kafka.checkpoints import CheckpointTopic
from connectors.kafka.commands import CommandReader
from connectors.kafka.dead_letters import DeadLetter, NoSuchLetter, letter, letters
from connectors.kafka.dead_letters import replay as send_again
from connectors.kafka.ingress import Ingress, IngressHalted
from connectors.kafka.ingress import run as run_ingress
from connectors.kafka.log import TopicLog
from connectors.kafka.reader import EventReader, Foreign, Gap
from connectors.kafka.records import WIRE_HEAD
from connectors.kafka.relay import Halted, Relay, accepted
from connectors.kafka.relay import run as run_relay
from connectors.kafka.settings import KafkaNotConfigured, settings_from
from connectors.kafka.topics import Finding
from connectors.keys.signing import Signer
from connectors.postgres.journal import JournalReader
from connectors.postgres.marks import PostgresMarks
from connectors.postgres.migrate import migrate
from connectors.postgres.places import PostgresPlaces
from connectors.postgres.projecting import Follower
from connectors.running.files import Service
from connectors.running.roles import KAFKA_ROLES as ROLES
from connectors.tokens.tokens import TokenFile
from connectors.wiring.proving import SIGNING, signer_of, tree_of
from connectors.wiring.roles import until_signalled
from domain.ids import PrincipalId
from domain.principal import Principal, Role
from projections.catalogue import all_projections
from schemas.codec import Malformed
from schemas.event_json import event_json
from schemas.json_form import render
from schemas.registry import registry


class UnknownProjection(LookupError):
    """No read model has that name."""


BOUND_PRINCIPAL = "KAFKA_COMMANDS_PRINCIPAL"
"""The setting that binds the commands' topic to one service principal, for records without a token."""


def create_topics(replicas: int | None) -> Sequence[str]:
    """Make the missing topics; their names. Raises `KafkaNotConfigured`, `KafkaError`."""
    return topics.create(settings_from(), replicas=replicas)


def accept_topic(dsn: str) -> tuple[int, int]:
    """Let the relay go on behind what the events' topic has: its last event, and how many are sent again.

    Raises `KafkaNotConfigured`, `KafkaError`, `JournalUnavailable`, and `Halted` for a fork.
    """
    log, marks = JournalReader(dsn), PostgresMarks(dsn)
    try:
        mark, lost = accepted(settings_from(), log, marks.mark())
        marks.accept(mark)
    finally:
        marks.close()
        log.close()
    return mark.seq, lost


def check_topics() -> Sequence[Finding]:
    """What is wrong or weak about the topics. Raises `KafkaNotConfigured`, `KafkaError`."""
    return topics.check(settings_from())


def events(after: int, limit: int) -> list[dict[str, Any]]:
    """The events on Kafka behind a position, as JSON.

    Raises `KafkaNotConfigured`, `Gap`, `Foreign`, `KafkaError`.
    """
    found: list[dict[str, Any]] = []
    with EventReader(settings_from()) as reader:
        reader.skip_to(after)
        for batch in reader.read_all():
            found += [event_json(e.envelope, e.body, registry()) for e in batch]
            if len(found) >= limit:
                break
    return found[:limit]


def dead_letters() -> Sequence[DeadLetter]:
    """What was set apart. Raises `KafkaNotConfigured`, `KafkaError`."""
    return list(letters(settings_from(), registry()))


def dead_letter(number: int) -> tuple[DeadLetter, object]:
    """One of them, and its command as JSON as far as it can be read.

    Raises `KafkaNotConfigured`, `NoSuchLetter`, `KafkaError`.
    """
    found = letter(settings_from(), registry(), number)
    if not found.command or found.value is None:
        return found, None
    try:
        return found, render(registry().decode(found.command, found.value[WIRE_HEAD.size :]))
    except Malformed as error:
        return found, str(error)


def replay(number: int, token: str, key: str) -> int:
    """Publish a dead letter again; its new offset.

    Raises `KafkaNotConfigured`, `NoSuchLetter`, `KafkaError`.
    """
    settings = settings_from()
    return send_again(settings, letter(settings, registry(), number), token, key)


def follow(name: str, dsn: str) -> int:
    """One read model from the topic into a database, until told to stop; its exit status.

    Raises `UnknownProjection`, `KafkaNotConfigured`, `Gap`, `Foreign`, `KafkaError`.
    """
    known = {projection.name: projection for projection in all_projections()}
    if name not in known:
        raise UnknownProjection(f"no projection is named {name}; there are {', '.join(known)}")
    stopped = until_signalled()
    migrate(dsn)
    log = TopicLog(settings_from())
    follower = Follower(dsn, registry(), [known[name]], snapshots=False, log=log)
    try:
        follower.run(stopped)
    finally:
        follower.close()
        log.close()
    return 0


def serve(role: str, service: Service, folder: Path) -> int:
    """A role that speaks with Kafka over a data folder, until told to stop; its exit status.

    Raises `KafkaNotConfigured`, and `Halted` when topic and log contradict each other.
    """
    assert role in ROLES, "the command line has looked"
    if role == "relay":
        return serve_relay(service, signer_of(read_secret(folder, SIGNING)))
    return serve_ingress(service, folder / "tokens.json")


def serve_relay(service: Service, signer: Signer) -> int:
    """Every event to its topic, and signed checkpoints of it, until told to stop."""
    stopped = until_signalled()
    settings = settings_from()
    marks, log = PostgresMarks(service.dsn), JournalReader(service.dsn)
    checkpoints = CheckpointTopic(settings, lambda: tree_of(log), signer.key.name, signer.sign)
    relay = Relay(log, marks, registry(), settings)
    try:
        run_relay(relay, marks, marks.wait, stopped, checkpoints.follow)
    finally:
        checkpoints.close()
        marks.close()
    return 0


def serve_ingress(service: Service, tokens: Path) -> int:
    """Every command from its topic, until told to stop."""
    stopped = until_signalled()
    bound = os.environ.get(BOUND_PRINCIPAL)
    principal = Principal(PrincipalId(bound), Role.SERVICE) if bound else None
    places = PostgresPlaces(service.dsn)
    gateway = Gateway(Path(service.socket))
    reader = CommandReader(registry(), TokenFile(tokens), principal)
    try:
        run_ingress(Ingress(settings_from(), reader, gateway, places, registry()), stopped)
    finally:
        gateway.close()
        places.close()
    return 0


__all__ = [
    "ROLES",
    "Finding",
    "Foreign",
    "Gap",
    "Halted",
    "IngressHalted",
    "KafkaError",
    "KafkaNotConfigured",
    "NoSuchLetter",
    "UnknownProjection",
    "accept_topic",
    "check_topics",
    "create_topics",
    "dead_letter",
    "dead_letters",
    "events",
    "follow",
    "replay",
    "serve",
]

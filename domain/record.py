"""A fact with everything that is said about it: its place, its time, its cause."""

from dataclasses import dataclass

from domain.facts.fact import Fact
from domain.ids import CommandId, EventId, PrincipalId
from domain.timespan import Instant


@dataclass(frozen=True, slots=True)
class IngressPlace:
    """Where on Kafka a command came from."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """One fact in the journal, as readers get it."""

    shard: int
    seq: int
    event_id: EventId
    stream_version: int
    recorded_at: Instant
    occurred_at: Instant
    principal_id: PrincipalId
    cause: str
    command_id: CommandId | None
    fact: Fact

"""Kafka's parts put together from the environment."""

from collections.abc import Sequence

from kafka.errors import KafkaError

from connectors.kafka import topics
from connectors.kafka.settings import KafkaNotConfigured, settings_from
from connectors.kafka.topics import Finding


def create_topics(replicas: int | None) -> Sequence[str]:
    """Make the missing topics; their names. Raises `KafkaNotConfigured`, `KafkaError`."""
    return topics.create(settings_from(), replicas=replicas)


def check_topics() -> Sequence[Finding]:
    """What is wrong or weak about the topics. Raises `KafkaNotConfigured`, `KafkaError`."""
    return topics.check(settings_from())


__all__ = ["Finding", "KafkaError", "KafkaNotConfigured", "check_topics", "create_topics"]

"""Charges on their way to others: kept in PostgreSQL, then told on Kafka."""

from connectors.kafka.charges import ChargesDiffer, ChargeTopic
from connectors.kafka.records import BadRecord
from connectors.kafka.settings import KafkaNotConfigured, KafkaSettings, settings_from
from connectors.kafka.topics import TopicsUnsafe
from connectors.postgres.charges import ChargeTables
from schemas.registry import registry


def publish(dsn: str, settings: KafkaSettings) -> int:
    """Every kept row of closed periods that is not on the topic yet, in order; how many.

    Raises `TopicsUnsafe`, `ChargesDiffer`, `BadRecord`, `KafkaError`.
    """
    count = 0
    with ChargeTables(dsn) as tables:
        topic = ChargeTopic(tables, registry(), settings)
        try:
            topic.open()
            while sent := topic.step():
                count += sent
        finally:
            topic.close()
    return count


__all__ = [
    "BadRecord",
    "ChargesDiffer",
    "KafkaNotConfigured",
    "TopicsUnsafe",
    "publish",
    "settings_from",
]

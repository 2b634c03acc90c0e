"""Topics on a real broker."""

from dataclasses import replace

import pytest
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType

from connectors.kafka import topics
from connectors.kafka.settings import KafkaSettings
from tests.kafka_parts import gpuledger


def test_topics_are_missing_then_made_then_safe(kafka_settings: KafkaSettings) -> None:
    before = gpuledger(kafka_settings, "topics", "check")
    assert before.returncode == 1
    assert "does not exist" in before.stdout
    assert len(topics.create(kafka_settings)) == 6
    assert topics.create(kafka_settings) == []
    after = gpuledger(kafka_settings, "topics", "check", "--json")
    assert after.returncode == 0, after.stderr
    assert '"safe": true' in after.stdout


def test_a_compacted_topic_is_not_run_on(kafka_settings: KafkaSettings) -> None:
    topics.create(kafka_settings)
    name = kafka_settings.prefix + topics.EVENTS
    with topics.admin(kafka_settings) as client:
        resource = ConfigResource(
            ConfigResourceType.TOPIC, name, {"cleanup.policy": (AlterConfigOp.SET, "compact")}
        )
        client.alter_configs([resource])
    topics.must_be_safe(kafka_settings, [topics.COMMANDS])
    with pytest.raises(topics.TopicsUnsafe, match="compaction"):
        topics.must_be_safe(kafka_settings, [topics.EVENTS])
    topics.must_be_safe(replace(kafka_settings, accepts_loss=True), [topics.EVENTS])


def test_a_broker_that_is_away_is_said_to_be_away(kafka_settings: KafkaSettings) -> None:
    nowhere = KafkaSettings(("127.0.0.1:1",), kafka_settings.prefix)
    found = gpuledger(nowhere, "topics", "check")
    assert found.returncode == 3
    assert "Traceback" not in found.stderr

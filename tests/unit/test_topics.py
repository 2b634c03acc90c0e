"""What makes a topic safe, told from its settings."""

import pytest

from connectors.kafka.settings import KafkaNotConfigured, settings_from
from connectors.kafka.topics import Topic, TopicState, findings, topics

EVENTS = next(topic for topic in topics() if topic.name == "events.v1")


def state(
    topic: Topic = EVENTS, *, replicas: int = 3, partitions: int = 0, **configs: str
) -> TopicState:
    changed = {name.replace("_", "."): value for name, value in configs.items()}
    return TopicState(
        topic.name, partitions or topic.partitions, replicas, {**topic.configs(replicas), **changed}
    )


@pytest.mark.parametrize("topic", topics(), ids=lambda topic: topic.name)
def test_a_topic_as_it_is_made_has_no_fault(topic: Topic) -> None:
    assert findings(topic, state(topic)) == []


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (TopicState("events.v1"), "does not exist"),
        (state(partitions=2), "2 partitions, must have 1"),
        (state(cleanup_policy="compact"), "compaction drops records"),
        (state(retention_ms="604800000"), "retention.ms is 604800000"),
        (state(retention_bytes="1000"), "drops old records"),
        (state(unclean_leader_election_enable="true"), "without the records"),
        (state(min_insync_replicas="1"), "below 2"),
    ],
)
def test_a_setting_that_can_lose_records_is_grave(found: TopicState, words: str) -> None:
    (finding,) = findings(EVENTS, found)
    assert finding.is_grave
    assert words in finding.words


def test_one_copy_is_weak_but_no_fault_of_the_topic() -> None:
    (finding,) = findings(EVENTS, state(replicas=1))
    assert not finding.is_grave


def test_settings_name_the_brokers_and_how_to_be_let_in() -> None:
    settings = settings_from(
        {
            "KAFKA_BOOTSTRAP_SERVERS": "one:9092, two:9092",
            "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "KAFKA_SASL_PLAIN_PASSWORD": "secret",
        }
    )
    assert settings.client["bootstrap_servers"] == ["one:9092", "two:9092"]
    assert settings.client["security_protocol"] == "SASL_SSL"
    assert settings.client["sasl_plain_password"] == "secret"
    assert "secret" not in repr(settings)


def test_without_a_broker_the_error_says_how_to_name_one() -> None:
    with pytest.raises(KafkaNotConfigured, match="KAFKA_BOOTSTRAP_SERVERS"):
        settings_from({"KAFKA_BOOTSTRAP_SERVERS": " "})

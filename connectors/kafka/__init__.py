"""Kafka: the way in for commands and the ordered public copy of every event."""

"""How Kafka is reached, from the environment, in the words of kafka-python."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

PREFIX = "gpuledger."
FIRST_ANSWER_SECONDS_MAX = 8

# Passed through to every client as they are; a name is the setting of kafka-python in capitals.
PASSED_THROUGH = (
    "security_protocol",
    "sasl_mechanism",
    "sasl_plain_username",
    "sasl_plain_password",
    "ssl_cafile",
    "ssl_certfile",
    "ssl_keyfile",
    "ssl_password",
)


class KafkaNotConfigured(Exception):
    """No broker is named; the words say how to name one."""


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """The brokers, and what a client needs to be let in."""

    bootstrap_servers: tuple[str, ...]
    prefix: str = PREFIX
    security: Mapping[str, str] = field(default_factory=dict, repr=False)
    accepts_loss: bool = False
    """Run although a topic's settings can lose records; somebody has said so."""

    @property
    def client(self) -> dict[str, object]:
        """Keyword arguments that every kafka-python client takes."""
        return {
            "bootstrap_servers": list(self.bootstrap_servers),
            "bootstrap_timeout_ms": FIRST_ANSWER_SECONDS_MAX * 1000,
            **self.security,
        }


def settings_from(environment: Mapping[str, str] = os.environ) -> KafkaSettings:
    """The settings of `KAFKA_BOOTSTRAP_SERVERS`, `KAFKA_PREFIX`, `KAFKA_SASL_MECHANISM`, ...

    `KAFKA_ACCEPT_LOSS=yes` runs on topics that can lose records. Raises `KafkaNotConfigured` when no broker is named.
    """
    servers = [name.strip() for name in environment.get("KAFKA_BOOTSTRAP_SERVERS", "").split(",")]
    if not any(servers):
        raise KafkaNotConfigured(
            "no broker is named; set KAFKA_BOOTSTRAP_SERVERS=HOST:PORT[,HOST:PORT...], "
            "or let `gpuledger dev --kafka` start one"
        )
    security = {
        name: environment[f"KAFKA_{name.upper()}"]
        for name in PASSED_THROUGH
        if environment.get(f"KAFKA_{name.upper()}")
    }
    prefix = environment.get("KAFKA_PREFIX", PREFIX)
    accepts_loss = environment.get("KAFKA_ACCEPT_LOSS", "") == "yes"
    return KafkaSettings(tuple(filter(None, servers)), prefix, security, accepts_loss)

"""The verbs of Kafka's topics: create, check."""

from typing import Annotated

import typer

from connectors.cli.console import (
    NOT_REACHABLE,
    REFUSED,
    USED_WRONGLY,
    err,
    fail,
    group,
    options,
    tell,
)

topics, topics_verb = group("topics", "Kafka's topics: create, check")


@topics_verb("create")
def create(
    replicas: Annotated[
        int, typer.Option(min=0, help="copies of each; 0 takes three, or as many as brokers")
    ] = 0,
) -> None:
    """Make the topics that are missing; those that are there stay as they are."""
    from connectors.wiring import kafka

    try:
        made = kafka.create_topics(replicas or None)
    except kafka.KafkaNotConfigured as error:
        fail(USED_WRONGLY, str(error))
    except kafka.KafkaError as error:
        fail(NOT_REACHABLE, f"Kafka says: {error}")
    rows = [{"topic": name, "is": "made"} for name in made]
    tell({"made": made}, rows or [{"topic": "all of them", "is": "there before"}], ("topic", "is"))


@topics_verb("check")
def check() -> None:
    """Whether the topics are there and none of their settings can lose a record."""
    from connectors.wiring import kafka

    try:
        found = kafka.check_topics()
    except kafka.KafkaNotConfigured as error:
        fail(USED_WRONGLY, str(error))
    except kafka.KafkaError as error:
        fail(NOT_REACHABLE, f"Kafka says: {error}")
    rows = [
        {"topic": each.topic, "weight": "grave" if each.is_grave else "weak", "finding": each.words}
        for each in found
    ]
    grave = any(each.is_grave for each in found)
    tell({"findings": rows, "safe": not grave}, rows, ("topic", "weight", "finding"))
    if grave:
        if not options.json:
            err.print("`gpuledger topics create` makes what is missing", highlight=False)
        raise typer.Exit(REFUSED)

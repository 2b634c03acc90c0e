"""The verbs of Kafka's topics: create, check, accept."""

from contextlib import nullcontext
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

topics, topics_verb = group("topics", "Kafka's topics: create, check, accept")


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


@topics_verb("accept")
def accept(
    dsn: Annotated[str, typer.Option(help="the log; the local service's when not given")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="ask nothing")] = False,
) -> None:
    """Accept that the topic of events lost records: the halted relay sends what is missing again.

    Whoever read the topic before has seen those events, and drops what comes twice by its position.
    A topic that has what the log has not is a fork, and cannot be accepted.
    """
    from connectors.cli.database import database
    from connectors.wiring import kafka
    from domain.journal import JournalUnavailable

    if not yes:
        typer.confirm("Does the topic stay as it is, without what it lost?", abort=True)
    try:
        with nullcontext(dsn) if dsn else database() as log:
            seq, lost = kafka.accept_topic(log)
    except kafka.KafkaNotConfigured as error:
        fail(USED_WRONGLY, str(error))
    except kafka.Halted as error:
        fail(REFUSED, str(error))
    except (kafka.KafkaError, JournalUnavailable) as error:
        fail(NOT_REACHABLE, f"{type(error).__name__}: {error}")
    row = {"topic_ends_at": seq, "sent_again": lost}
    tell(row, [row], tuple(row))

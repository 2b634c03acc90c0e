"""The verb that brings a log back: restore."""

from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from connectors.cli.console import NOT_REACHABLE, REFUSED, USED_WRONGLY, err, fail, options, tell


class Source(StrEnum):
    """Where a log can be brought back from."""

    KAFKA = "kafka"


def restore(
    dsn: Annotated[
        str, typer.Option(help="an empty database; with --catch-up, one that is behind")
    ],
    source: Annotated[Source, typer.Option("--from", help="which copy")] = Source.KAFKA,
    catch_up: Annotated[
        bool, typer.Option("--catch-up", help="mend a database that is older than its topic")
    ] = False,
) -> None:
    """Rebuild log, claims, offsets, snapshot and read models from the topic, and compare hashes.

    The data folder's fingerprint.secret is not on Kafka: keep it, or keys that were used before are
    taken for used with another body.
    """
    from connectors.wiring import kafka, restoring
    from domain.journal import Fenced, JournalUnavailable

    columns = (TextColumn("restoring"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=err, disable=options.json) as progress:
            task = progress.add_task("restoring")
            done = restoring.restore_from_kafka(
                dsn,
                catch_up=catch_up,
                tell=lambda there, total: progress.update(task, completed=there, total=total),
            )
    except kafka.KafkaNotConfigured as error:
        fail(USED_WRONGLY, str(error))
    except (restoring.RestoreRefused, kafka.Gap, kafka.Foreign, Fenced) as error:
        fail(REFUSED, str(error), f"nothing from {source.value} behind that was written")
    except (kafka.KafkaError, JournalUnavailable) as error:
        fail(NOT_REACHABLE, f"{type(error).__name__}: {error}")
    content = asdict(done) | {"source": source.value}
    rows = [
        {"what": "events there", "is": f"{done.events}, of which {done.restored} came now"},
        {"what": "root", "is": done.root},
        {"what": "state hash", "is": done.state_hash},
        {"what": "the writer's epoch", "is": str(done.epoch)},
        *({"what": name, "is": str(value)} for name, value in done.checks.items()),
        {"what": "claims that cannot be brought back", "is": str(done.claims_lost)},
        {
            "what": "not known",
            "is": f"what was acknowledged behind {done.unknown_after} and never reached the topic",
        },
    ]
    tell(content, rows, ("what", "is"))
    if not all(done.checks.values()):
        raise typer.Exit(REFUSED)

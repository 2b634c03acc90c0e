"""The verbs of dead letters: list, show, replay."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from connectors.cli.console import (
    NOT_REACHABLE,
    REFUSED,
    USED_WRONGLY,
    fail,
    folder,
    group,
    options,
    tell,
)
from connectors.running.files import read_service

dlq, dlq_verb = group("dlq", "Records from Kafka that were set apart: list, show, replay")

Number = Annotated[int, typer.Argument(help="as 'dlq list' numbers them")]


@contextmanager
def _faults_told() -> Iterator[None]:
    from connectors.wiring import kafka

    try:
        yield
    except kafka.KafkaNotConfigured as error:
        fail(USED_WRONGLY, str(error))
    except kafka.NoSuchLetter as error:
        fail(REFUSED, str(error), "`gpuledger dlq list` shows all")
    except kafka.KafkaError as error:
        fail(NOT_REACHABLE, f"Kafka says: {error}")


def _row(letter: Any) -> dict[str, Any]:  # noqa: ANN401 - a dead letter; its module loads Kafka
    return {
        "number": letter.number,
        "from": f"{letter.topic}/{letter.partition}/{letter.offset}",
        "command": letter.command or "?",
        "bytes": len(letter.value or b""),
        "reason": letter.reason,
    }


@dlq_verb("list")
def list_letters() -> None:
    """Every record that was set apart, and why."""
    from connectors.wiring import kafka

    with _faults_told():
        rows = [_row(letter) for letter in kafka.dead_letters()]
    tell({"letters": rows}, rows, ("number", "from", "command", "bytes", "reason"))


@dlq_verb("show")
def show(number: Number) -> None:
    """One of them with its headers, and its command as far as it can be read."""
    from connectors.wiring import kafka

    with _faults_told():
        letter, command = kafka.dead_letter(number)
    content = _row(letter) | {
        "headers": {name: value.decode(errors="replace") for name, value in letter.headers},
        "value": (letter.value or b"").hex(),
        "read": command,
    }
    rows = [{"field": name, "value": value} for name, value in content.items()]
    tell(content, rows, ("field", "value"))


@dlq_verb("replay")
def replay(
    number: Number,
    key: Annotated[str, typer.Option(help="another idempotency key, when its own is used")] = "",
) -> None:
    """Publish it again as it was, under your own token; its outcome comes as any other's."""
    from connectors.wiring import kafka

    service = read_service(folder())
    token = options.token or (service.tokens.get(options.role, "") if service else "")
    if not token:
        fail(USED_WRONGLY, "a command needs a token", "give one with --token")
    with _faults_told():
        offset = kafka.replay(number, token, key)
    rows = [{"letter": number, "offset": offset}]
    tell({"letter": number, "offset": offset}, rows, ("letter", "offset"))

"""Logs with something in them, for the tests of what reads logs."""

from connectors.postgres.journal import PostgresJournal
from connectors.sequencer.engine import Sequencer
from connectors.sequencer.opening import open_sequencer
from domain.commands import Command
from domain.submission import Outcome, OutcomeKind, Submission
from schemas.registry import registry
from tests import builders as b


def opened(dsn: str) -> Sequencer:
    """A writer over a database, on a clock that the commands set."""
    return open_sequencer(PostgresJournal(dsn), registry(), holder="t", secret=b"t", clock=None)


def furnished(dsn: str) -> Sequencer:
    """The same, with two nodes and a tenant that has quota for them."""
    sequencer = opened(dsn)
    send(sequencer, b.open_pool(), b.join("n1"), b.join("n2"), b.register("a"), b.grant("a"))
    return sequencer


def send(sequencer: Sequencer, *commands: Command) -> list[Outcome]:
    """Outcomes of commands, each of which is decided."""
    batch = []
    for number, command in enumerate(commands):
        contract, body = registry().encode(command)
        key = f"{sequencer.head.seq}-{number}"
        batch.append(Submission(b.OPERATOR, key, contract.type, body, b.T0))
    outcomes = sequencer.submit(batch)
    assert {o.kind for o in outcomes} <= {OutcomeKind.ACCEPTED, OutcomeKind.REFUSED}
    return outcomes


def shut(sequencer: Sequencer) -> None:
    """The next writer may come at once."""
    sequencer.journal.release_lease()
    sequencer.journal.close()  # type: ignore[attr-defined]

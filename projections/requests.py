"""Requests that changed nothing: refused, without effect, quarantined; for `why`."""

import json
from typing import NamedTuple

from domain.facts.request import CommandHadNoEffect, CommandQuarantined, CommandRefused
from domain.record import Recorded
from projections.table import Table


class RequestRow(NamedTuple):
    """One command. `evidence` and `offers` are JSON."""

    command_id: str
    command: str
    principal_id: str
    kind: str
    reason: str
    evidence: str
    offers: str
    recorded_at: int
    seq: int


class Requests:
    """Why commands came to nothing."""

    name = "requests"
    version = 1

    def __init__(self) -> None:
        """Begin empty."""
        self.table = Table("request", RequestRow, 1)
        self.tables: tuple[Table, ...] = (self.table,)

    def apply(self, recorded: Recorded) -> None:
        """A row for each such fact; it never changes again."""
        match recorded.fact:
            case CommandRefused() as fact:
                offers = [[offer.start, offer.end] for offer in fact.offers]
                evidence = json.dumps(dict(fact.evidence), sort_keys=True)
                told = ("refused", fact.reason, evidence, json.dumps(offers))
            case CommandHadNoEffect() as fact:
                told = ("no-effect", fact.why, "{}", "[]")
            case CommandQuarantined() as fact:
                told = ("quarantined", fact.error, "{}", "[]")
            case _:
                return
        row = RequestRow(
            fact.command_id,
            fact.command,
            recorded.principal_id,
            *told,
            recorded.recorded_at,
            recorded.seq,
        )
        self.table.put(row)
        self.table.is_final((fact.command_id,))

    def settle(self) -> None:
        """Rows are always up to date."""

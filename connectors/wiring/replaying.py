"""Past moments and accounts of reservations, read from a log, as JSON."""

import time
from collections.abc import Iterator
from typing import Any

from connectors.postgres.journal import JournalReader
from connectors.postgres.recorded import recorded
from domain.evolve import evolve
from domain.ids import ReservationId
from domain.ledger import Ledger
from domain.record import Recorded
from domain.timespan import FAR_FUTURE, Instant
from projections.account import Account, Step
from projections.moment import Moment, moment_of
from schemas.image import hash_of, image_of
from schemas.json_form import instant_text, render
from schemas.registry import registry


class LogHistory:
    """Reads a log from its beginning for each question."""

    def __init__(self, dsn: str) -> None:
        """Of a database; each question has a connection of its own."""
        self._dsn = dsn

    def events(self) -> int:
        """How many events there are. Raises `JournalUnavailable`."""
        reader = JournalReader(self._dsn)
        try:
            head = reader.head()
        finally:
            reader.close()
        return head.seq if head else 0

    def replay(self, as_of: Instant, known_at: Instant | None) -> dict[str, Any]:
        """A moment as it was known at an instant, or as it is known now. Raises `JournalUnavailable`."""
        ledger = Ledger(shard=0)

        def fold(entry: Recorded) -> None:
            evolve(ledger, entry.fact, entry.occurred_at)
            ledger.undo.forget()
            ledger.changes.clear()

        found = moment_of(lambda: self._known(known_at), as_of, _now(), fold)
        told = _moment(found) | {"as_known_at": instant_text(known_at) if known_at else "now"}
        return told | {"state_hash": hash_of(image_of(ledger)).hex()}

    def explain(self, reservation_id: str) -> list[dict[str, Any]]:
        """Every step of a reservation; none when there is no such one. Raises `JournalUnavailable`."""
        account = Account(ReservationId(reservation_id))
        for entry in self._known(None):
            account.apply(entry)
        return [_step(step) for step in account.steps]

    def _known(self, known_at: Instant | None) -> Iterator[Recorded]:
        """The facts that were recorded up to an instant."""
        reader = JournalReader(self._dsn)
        until = FAR_FUTURE if known_at is None else known_at
        try:
            for event in reader.read_all(0):
                if event.recorded_at > until:
                    return
                yield recorded(event, registry())
        finally:
            reader.close()


def _now() -> Instant:
    return Instant(time.time_ns() // 1000)


def _moment(found: Moment) -> dict[str, Any]:
    return {
        "as_of": instant_text(found.as_of),
        "seq": found.seq,
        "holders": [
            {**row._asdict(), "start": instant_text(row.start), "end": instant_text(row.end)}
            for row in found.holders
        ],
        "quota": [
            {
                **each.grant._asdict(),
                "start": instant_text(each.grant.start),
                "end": instant_text(each.grant.end),
                "held_milli": each.held_milli,
            }
            for each in found.quota
        ],
        "usage": [
            {"pool_id": pool_id, "tenant_id": tenant_id, "state": state, "gpu_microseconds": amount}
            for (pool_id, tenant_id, state), amount in found.usage.items()
        ],
        "charges": [
            {"account_id": account_id, "currency": currency, "cost": format(cost, "f")}
            for (account_id, currency), cost in found.charges.items()
        ],
    }


def _step(step: Step) -> dict[str, Any]:
    entry = step.entry
    return {
        "seq": entry.seq,
        "recorded_at": instant_text(entry.recorded_at),
        "occurred_at": instant_text(entry.occurred_at),
        "what": type(entry.fact).__name__,
        "who": entry.principal_id,
        "because": entry.cause,
        "command_id": entry.command_id,
        "plan": {"plan_id": step.plan_id, "seq": step.plan_seq} if step.plan_id else None,
        "quota": [{"seq": basis.seq, **render(basis.grant)} for basis in step.quota],
        "fact": render(entry.fact),
    }

"""Charges of closed periods on their topic: each row once, in the order in which periods closed.

A batch is one Kafka transaction; whoever begins later fences whoever began before, and asks the
partition itself where to go on.
"""

from collections.abc import Sequence

import structlog
from kafka import KafkaProducer

from connectors.kafka import topics
from connectors.kafka.records import BadRecord, Header, header, number, wire
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.tail import last_record
from domain.messages import ClosedCharge
from domain.publishing import BEFORE_ALL, ChargePlace, ClosedCharges
from schemas.registry import Registry

BATCH_ROWS_MAX = 1_000
TRANSACTION_SECONDS_MAX = 15
PARTITION = 0

_log = structlog.get_logger("charges")


class ChargesDiffer(Exception):
    """The topic tells of a charge that is not the one that is kept."""


class ChargeTopic:
    """The one publisher of charges, from the tail of the topic on."""

    def __init__(self, charges: ClosedCharges, registry: Registry, settings: KafkaSettings) -> None:
        """A publisher to be; `open` finds out where to go on."""
        self._charges = charges
        self._registry = registry
        self._settings = settings
        self._topic = settings.prefix + topics.CHARGES
        self._producer: KafkaProducer | None = None
        self._place = BEFORE_ALL

    def open(self) -> None:
        """Fence every other publisher, and find the last row on the topic.

        Raises `TopicsUnsafe`, `ChargesDiffer`, kafka-python's `KafkaError`, `BadRecord`.
        """
        topics.must_be_safe(self._settings, [topics.CHARGES])
        self.close()
        self._producer = KafkaProducer(
            **self._settings.client,
            transactional_id=f"{self._settings.prefix}charges",
            transaction_timeout_ms=TRANSACTION_SECONDS_MAX * 1000,
            acks="all",
            linger_ms=5,
            batch_size=1 << 18,
            max_block_ms=TRANSACTION_SECONDS_MAX * 1000,
            delivery_timeout_ms=2 * TRANSACTION_SECONDS_MAX * 1000,
            request_timeout_ms=TRANSACTION_SECONDS_MAX * 1000,
        )
        # What a former publisher left open is aborted here, so the tail that is read next is final.
        self._producer.init_transactions()
        last = last_record(self._settings, self._topic, PARTITION)
        self._place = BEFORE_ALL if last is None else self._known(last.headers)
        _log.info("charges_opened", closed_seq=self._place.closed_seq, row=self._place.number)

    def _known(self, headers: Sequence[Header]) -> ChargePlace:
        """The place of the last row on the topic, which must be one that is kept."""
        place = ChargePlace(number(headers, "lg_seq"), number(headers, "lg_row"))
        told = header(headers, "ce_id").decode()
        kept = self._charges.at(place)
        if kept is None or kept.row_id != told:
            raise ChargesDiffer(
                f"{self._topic} ends with row {place.number} of the period closed at"
                f" {place.closed_seq}, {told}; kept there is {kept.row_id if kept else 'nothing'}"
            )
        return place

    def step(self) -> int:
        """Send the next batch as one transaction; how many rows it had.

        Raises kafka-python's `KafkaError`; then `open` again.
        """
        assert self._producer is not None, "open comes first"
        rows = self._charges.after(self._place, BATCH_ROWS_MAX)
        if not rows:
            return 0
        self._producer.begin_transaction()
        sent = [self._send(self._producer, row) for row in rows]
        self._producer.flush()
        for future in sent:
            future.get(TRANSACTION_SECONDS_MAX)  # type: ignore[attr-defined]
        self._producer.commit_transaction()
        self._place = ChargePlace(rows[-1].closed_seq, rows[-1].number)
        return len(rows)

    def _send(self, producer: KafkaProducer, row: ClosedCharge) -> object:
        contract, body = self._registry.encode(row)
        headers = [
            ("ce_specversion", b"1.0"),
            ("ce_id", row.row_id.encode()),
            ("ce_type", contract.type.encode()),
            ("ce_source", b"gpuledger/charges"),
            ("ce_subject", f"period/{row.tenant_id}/{row.start}".encode()),
            ("lg_seq", str(row.closed_seq).encode()),
            ("lg_row", str(row.number).encode()),
            ("lg_rows", str(row.rows).encode()),
        ]
        return producer.send(
            self._topic,
            partition=PARTITION,
            key=row.tenant_id.encode(),
            value=wire(contract.id, body),
            headers=headers,
        )

    def close(self) -> None:
        """Let go of the brokers; what is not committed is aborted by whoever comes next."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close(timeout=1)


__all__ = ["BadRecord", "ChargeTopic", "ChargesDiffer"]

"""One event as a Kafka record: Avro body, wire format, envelope, leaf and headers."""

import time
from collections.abc import Sequence

import structlog

from benchmarks.brokers import grown
from benchmarks.figures import Figure, database, main
from connectors.kafka.records import event_of, record_of, wire
from connectors.postgres.journal import JournalReader
from schemas.envelope import decode_envelope, encode_envelope, leaf_of
from schemas.registry import registry

EVENTS = 20_000


def _us(begun: float, count: int) -> float:
    return (time.perf_counter() - begun) / count * 1e6


def measure() -> Sequence[Figure]:
    """Microseconds per event, each step by itself."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    known = registry()
    with database() as dsn:
        grown(dsn, EVENTS)
        reader = JournalReader(dsn)
        events = list(reader.read_all(0))
        reader.close()
    facts = [known.decode(event.type, event.body) for event in events]
    envelopes = [decode_envelope(event.envelope) for event in events]
    begun = time.perf_counter()
    for fact, envelope in zip(facts, envelopes, strict=True):
        contract, body = known.encode(fact)
        wire(contract.id, body)
        leaf_of(encode_envelope(envelope), body)
    encode = _us(begun, len(events))
    begun = time.perf_counter()
    records = [record_of(event, known, 0, 1) for event in events]
    record = _us(begun, len(events))
    begun = time.perf_counter()
    for each in records:
        event_of(each, registry())
    read = _us(begun, len(events))
    return [
        Figure("codec.encode", encode, "us"),
        Figure("codec.headers", record, "us"),
        Figure("codec.encode-wire-headers", encode + record, "us", 12, is_most=True),
        Figure("codec.read", read, "us"),
    ]


if __name__ == "__main__":
    main(measure, __doc__ or "")

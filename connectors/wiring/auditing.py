"""Proofs over the copies of a log: what is checked, and what cannot be excluded."""

from connectors.kafka.reader import EventReader, Foreign, Gap
from connectors.kafka.settings import settings_from
from connectors.postgres.journal import JournalReader
from connectors.postgres.verifying import verify_log as verify
from domain.journal import StoredEvent
from domain.merkle import Tree
from domain.verdict import KnownRoot, Verdict
from schemas.registry import registry


def verify_log(dsn: str, known: KnownRoot | None) -> Verdict:
    """The journal against everything that can be made anew from it. Raises `JournalUnavailable`."""
    reader = JournalReader(dsn)
    try:
        return verify(reader, registry(), known)
    finally:
        reader.close()


def verify_topic(dsn: str | None, known: KnownRoot | None) -> Verdict:
    """The events on Kafka: their leaves, no gap, their root; and the log beside it when it is there.

    Raises `KafkaNotConfigured`, kafka-python's `KafkaError`, `JournalUnavailable`.
    """
    verdict = Verdict()
    log = JournalReader(dsn) if dsn else None
    try:
        with EventReader(settings_from()) as reader:
            tree = _walk(reader, log, known, verdict)
    finally:
        if log is not None:
            log.close()
    verdict.events, verdict.root = tree.size, tree.root.hex()
    verdict.checked.append(f"leaves of {tree.size} events made anew from their bytes")
    verdict.checked.append("positions from 1 on without a gap")
    if known is not None and known.size > tree.size and verdict.holds:
        verdict.fault(f"the topic ends at {tree.size}, your root is of {known.size} events")
    if log is None and known is None:
        verdict.not_excluded.append(
            "that the topic ends early, or was written anew as a whole: compare the root with one "
            "that you kept, or give the log with --dsn"
        )
    return verdict


def _walk(
    reader: EventReader, log: JournalReader | None, known: KnownRoot | None, verdict: Verdict
) -> Tree:
    """The tree over the topic, up to the first fault."""
    tree = Tree()
    try:
        for events in reader.read_all():
            if log is not None and (difference := _difference(log, events)):
                verdict.faults.append(difference)
                return tree
            leaves = [event.leaf for event in events]
            if known is not None and tree.size < known.size <= tree.size + len(leaves):
                _against(known, tree.grown(leaves[: known.size - tree.size])[0], verdict)
            tree, _ = tree.grown(leaves)
    except (Gap, Foreign) as error:
        verdict.faults.append(str(error))
        return tree
    if log is None:
        return tree
    head = log.head()
    behind = (head.seq if head else 0) - tree.size
    if head is not None and behind == 0:
        verdict.checked.append("the same root as the head of the log")
        if Tree.from_bytes(head.tree).root != tree.root:
            verdict.faults.append(f"the head of the log at {head.seq} has another root")
    elif behind > 0:
        verdict.not_excluded.append(f"the last {behind} events of the log are not on Kafka yet")
    verdict.checked.append("every event on Kafka equals the one in the log")
    return tree


def _against(known: KnownRoot, tree: Tree, verdict: Verdict) -> None:
    if known.root == tree.root:
        verdict.checked.append(f"the root of the first {known.size} events is yours")
    else:
        verdict.fault(f"the first {known.size} events have another root than yours")


def _difference(log: JournalReader, events: list[StoredEvent]) -> str:
    """The first event that is another one in the log; nothing when there is none."""
    stored = log.read(events[0].seq - 1, len(events))
    for event, other in zip(events, stored, strict=False):
        if event.leaf != other.leaf or event.seq != other.seq:
            return f"event {event.seq} on Kafka is another one than in the log"
    if len(stored) < len(events):
        return f"event {events[len(stored)].seq} is on Kafka and not in the log"
    return ""

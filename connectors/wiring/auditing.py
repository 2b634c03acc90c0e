"""Proofs over the copies of a log: what is checked, and what cannot be excluded."""

from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path

from connectors.exports.history import (
    Manifest,
    read_history,
    read_manifest,
    write_history,
)
from connectors.kafka.reader import EventReader, Foreign, Gap
from connectors.kafka.settings import settings_from
from connectors.keys.signing import Signer, verified
from connectors.postgres.journal import JournalReader
from connectors.postgres.verifying import verify_log as verify
from connectors.wiring.proving import tree_of
from domain.checkpoint import BadNote, verifier_key_of
from domain.journal import StoredEvent
from domain.ledger import Ledger
from domain.merkle import Tree
from domain.verdict import KnownRoot, Verdict
from schemas.codec import Malformed
from schemas.envelope import decode_envelope, leaf_of
from schemas.image import hash_of, image_of
from schemas.ordering import Order, folded
from schemas.registry import registry

Tell = Callable[[int, int], None]
"""Hears how many events are done, and how many there are."""
TOLD_EVERY = 1_000


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


def export_history(dsn: str, folder: Path, signer: Signer, tell: Tell) -> Manifest:
    """The log as it is now, with all that is needed to verify it, into a folder.

    Raises `FolderWrong`, `JournalUnavailable`.
    """
    reader = JournalReader(dsn)
    try:
        tree = tree_of(reader)
        events = takewhile(lambda event: event.seq <= tree.size, _told(reader, tree.size, tell))
        note = signer.sign(tree.size, tree.root)
        return write_history(folder, events, registry(), tree.root, note, signer.key.text())
    finally:
        reader.close()


def _told(reader: JournalReader, total: int, tell: Tell) -> Iterator[StoredEvent]:
    for event in reader.read_all(0):
        if event.seq % TOLD_EVERY == 0 or event.seq == total:
            tell(event.seq, total)
        yield event


def verify_folder(folder: Path, known: KnownRoot | None, key: str) -> Verdict:
    """An exported history: its leaves, its order, its root, its signature, and its state by replay.

    Raises `FolderWrong`, and `BadNote` for a key that is none.
    """
    manifest = read_manifest(folder)
    verdict = Verdict()
    verdict.checked.append("every file is the one that was exported")
    tree, ledger, order = Tree(), Ledger(shard=0), Order()
    for envelope, body in read_history(folder):
        try:
            said = decode_envelope(envelope)
        except Malformed as error:
            verdict.fault(f"event {order.seq + 1}: {error}")
            break
        fault = order.follow(said) or folded(ledger, registry(), said, body)
        ledger.changes.clear()
        if fault:
            verdict.fault(fault)
            break
        tree, _ = tree.grown([leaf_of(envelope, body)])
        if known is not None and known.size == tree.size:
            _against(known, tree, verdict)
    verdict.events, verdict.root = tree.size, tree.root.hex()
    if verdict.holds and (tree.size, tree.root) != (manifest.events, manifest.root):
        verdict.fault(f"the manifest says {manifest.events} events of another root")
    if known is not None and known.size > tree.size and verdict.holds:
        verdict.fault(f"the history ends at {tree.size}, your root is of {known.size} events")
    if verdict.holds:
        verdict.checked.append(f"leaves of {tree.size} events made anew, in order without a gap")
        verdict.checked.append(
            f"a replay, which ends in the state {hash_of(image_of(ledger)).hex()}"
        )
    _against_note(manifest.note, tree, key, verdict)
    if known is None:
        verdict.not_excluded.append(
            "that all of it was written anew: give a checkpoint or a root that you kept"
        )
    return verdict


def _against_note(note: str, tree: Tree, key: str, verdict: Verdict) -> None:
    if not key:
        verdict.not_excluded.append("that the checkpoint is somebody else's: name its --key")
        return
    try:
        signed = verified(note, verifier_key_of(key))
    except BadNote as error:
        verdict.fault(f"the checkpoint in the folder: {error}")
        return
    if (signed.size, signed.root) == (tree.size, tree.root):
        verdict.checked.append(f"the checkpoint, signed by {signed.origin}")
    else:
        verdict.fault(f"the checkpoint is of {signed.size} events with another root")


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

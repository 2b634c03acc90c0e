"""Verify an exported gpuledger history with nothing of gpuledger's.

    gpuledger audit export FOLDER          # somebody else does this
    pip install fastavro cryptography
    python verify.py FOLDER --key NAME+ID+KEY [--kept CHECKPOINT.note ...]

It makes every leaf and the tree anew from the events' bytes, holds the root against the signed
checkpoint in the folder and against each checkpoint that you kept, looks for gaps in the log and in
each stream, follows who was entitled to which part of which GPU, and looks for two at once. It ends
with 0 when all of that holds, else with 1 and what is wrong. State hashes need gpuledger's own code.
"""

import argparse
import base64
import io
import json
import sys
from collections import defaultdict
from hashlib import sha256
from pathlib import Path

import fastavro
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


class Wrong(Exception):
    """What does not hold."""


# The tree of RFC 6962 -------------------------------------------------------------------------


def leaf(envelope: bytes, body: bytes) -> bytes:
    return sha256(b"\x00" + envelope + body).digest()


class Tree:
    """The roots of the full subtrees of what was added so far, the largest first."""

    def __init__(self) -> None:
        self.size, self.peaks = 0, []

    def add(self, digest: bytes) -> None:
        count = self.size
        while count & 1:
            digest = sha256(b"\x01" + self.peaks.pop() + digest).digest()
            count >>= 1
        self.peaks.append(digest)
        self.size += 1

    @property
    def root(self) -> bytes:
        if not self.peaks:
            return sha256().digest()
        *rest, root = self.peaks
        for peak in reversed(rest):
            root = sha256(b"\x01" + peak + root).digest()
        return root


# Signed checkpoints (C2SP signed-note and tlog-checkpoint) -------------------------------------


def signed(path: Path, key: str) -> tuple[int, bytes]:
    """Size and root of a checkpoint, once the key's signature holds."""
    name, key_id, encoded = key.strip().split("+", 2)
    octets = base64.b64decode(encoded, validate=True)
    known = sha256(name.encode() + b"\n" + octets).digest()[:4]
    if octets[:1] != b"\x01" or known.hex() != key_id:
        raise Wrong("--key is no Ed25519 verifier key")
    text, gap, lines = path.read_text().rpartition("\n\n")
    text += "\n"
    mine = []
    for line in lines.splitlines() if gap else ():
        _, who, signature = line.split(" ", 2)
        blob = base64.b64decode(signature, validate=True)
        if who == name and blob[:4] == known:
            mine.append(blob[4:])
    if not mine:
        raise Wrong(f"{path} bears no signature of {name}")
    try:
        for signature in mine:
            Ed25519PublicKey.from_public_bytes(octets[1:]).verify(signature, text.encode())
    except InvalidSignature as error:
        raise Wrong(f"{path}: the signature of {name} does not hold") from error
    origin, size, root, *_ = text.split("\n")
    if origin != name:
        raise Wrong(f"{path} is of {origin}, the key of {name}")
    return int(size), base64.b64decode(root, validate=True)


# Events ------------------------------------------------------------------------------------------


class Contracts:
    """Reads bodies and envelopes by the Avro contracts that lie beside the events."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._known = folder, {}

    def read(self, name: str, octets: bytes) -> dict:
        if name not in self._known:
            text = (self._folder / f"{name}.avsc").read_text()
            self._known[name] = fastavro.parse_schema(json.loads(text))
        stream = io.BytesIO(octets)
        record = fastavro.schemaless_reader(stream, self._known[name], None)
        if stream.tell() != len(octets):
            raise Wrong(f"{name}: {len(octets) - stream.tell()} bytes too many")
        return record


class Order:
    """Positions without a gap, times that go on, streams whose versions count up."""

    def __init__(self) -> None:
        self._seq, self._at, self._streams = 0, -1, defaultdict(int)

    def follow(self, envelope: dict) -> None:
        seq = envelope["seq"]
        if seq != self._seq + 1:
            raise Wrong(f"event {self._seq + 1} is missing or not in its place: {seq} stands there")
        if envelope["recorded_at"] <= self._at:
            raise Wrong(f"event {seq}: recorded time does not go on")
        version = self._streams[envelope["stream"]] + 1
        if envelope["stream_version"] != version:
            raise Wrong(f"event {seq}: {envelope['stream']} lacks its version {version}")
        self._seq, self._at = seq, envelope["recorded_at"]
        self._streams[envelope["stream"]] = version


# Who was entitled to what ------------------------------------------------------------------------

Part = tuple[str, int, int, int, int]
"""A node, the thousandths of its GPUs from and to, the microseconds from and to."""


def without(part: Part, node: str, low: int, high: int, start: int, end: int) -> list[Part]:
    """What is left of a part when a rectangle is taken out of it."""
    name, a, b, s, e = part
    if name != node or b <= low or high <= a or e <= start or end <= s:
        return [part]
    x, y = max(a, low), min(b, high)
    left = [(name, a, x, s, e), (name, y, b, s, e)]
    left += [(name, x, y, s, start), (name, x, y, end, e)]
    return [p for p in left if p[1] < p[2] and p[3] < p[4]]


class Holders:
    """The parts of each reservation, as the facts add to them and take from them."""

    def __init__(self) -> None:
        self.parts: dict[str, list[Part]] = defaultdict(list)
        self._ends: dict[str, int] = {}

    def follow(self, kind: str, fact: dict, at: int) -> None:
        who = fact.get("reservation_id")
        if kind in ADDING - {"UnitsAssigned"}:
            self._ends[who] = fact["end"]
        for segment in fact.get("segments", ()) if kind in ADDING else ():
            self._add(who, segment["pieces"], segment["start"], segment["end"])
        if kind == "UnitsReassigned":
            self._take(who, fact["left"], fact["start"], fact["end"])
            self._add(who, fact["taken"], fact["start"], fact["end"])
        elif kind == "UnitsReleased":
            self._take(who, fact["pieces"], fact["start"], fact["end"])
        elif kind == "ReservationShrunk":
            self._take(who, fact["pieces"], fact["at"], self._ends[who])
        elif kind == "ReservationPreempted":
            self._stop(who, fact["at"])
        elif kind == "ReservationEnded":
            self._stop(who, at)

    def _add(self, who: str, pieces: list[dict], start: int, end: int) -> None:
        for p in pieces:
            high = p["first_milli"] + p["width_milli"]
            self.parts[who].append((p["node_id"], p["first_milli"], high, start, end))

    def _take(self, who: str, pieces: list[dict], start: int, end: int) -> None:
        for p in pieces:
            low, high = p["first_milli"], p["first_milli"] + p["width_milli"]
            self.parts[who] = [
                rest
                for part in self.parts[who]
                for rest in without(part, p["node_id"], low, high, start, end)
            ]

    def _stop(self, who: str, at: int) -> None:
        cut = [(n, a, b, s, min(e, at)) for n, a, b, s, e in self.parts[who]]
        self.parts[who] = [part for part in cut if part[3] < part[4]]

    def conflict(self) -> str:
        """The first two that were entitled to the same thing at once; nothing when there are none."""
        nodes = defaultdict(list)
        for who, parts in self.parts.items():
            for node, low, high, start, end in parts:
                nodes[node].append((start, end, low, high, who))
        for node, spans in sorted(nodes.items()):
            live: list[tuple] = []
            for span in sorted(spans):
                start, _, low, high, who = span
                live = [other for other in live if other[1] > start]
                for _, _, x, y, other in live:
                    if low < y and x < high:
                        return f"{who} and {other} both hold {node} at {start}"
                live.append(span)
        return ""


ADDING = {
    "ReservationHeld",
    "ReservationConfirmed",
    "ReservationExtended",
    "ReservationRenewed",
    "UnitsAssigned",
}


def verify(folder: Path, key: str, kept: list[Path]) -> list[str]:
    """What holds. Raises `Wrong` at the first thing that does not."""
    size, root = signed(folder / "checkpoint.note", key)
    wanted = {path: signed(path, key) for path in kept}
    contracts, order, holders, tree = Contracts(folder / "schemas"), Order(), Holders(), Tree()
    with (folder / "events.avro").open("rb") as file:
        for row in fastavro.reader(file):
            envelope = contracts.read("Envelope", row["envelope"])
            tree.add(leaf(row["envelope"], row["body"]))
            order.follow(envelope)
            fact = contracts.read(envelope["type"], row["body"])
            holders.follow(envelope["type"].split(".")[0], fact, envelope["occurred_at"])
            for path, (then, digest) in wanted.items():
                if then == tree.size and digest != tree.root:
                    raise Wrong(f"the first {then} events are not those of {path}")
    if tree.size != size:
        raise Wrong(f"the checkpoint is of {size} events, there are {tree.size}")
    if tree.root != root:
        raise Wrong("the events have another root than the checkpoint: some of them were changed")
    for path, (then, _) in wanted.items():
        if then > size:
            raise Wrong(f"{path} is of {then} events: the log was cut to {size}")
    if words := holders.conflict():
        raise Wrong(words)
    return [
        f"{size} events, their leaves and the root {root.hex()}",
        "the signature of the checkpoint",
        *(f"the first {then} events are those of {path}" for path, (then, _) in wanted.items()),
        "no gap in the log or in a stream, and time goes on",
        f"nobody of {len(holders.parts)} held what another one held at the same time",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="what `gpuledger audit export` wrote")
    parser.add_argument(
        "--key", required=True, help="the log's verifier key, from a place of yours"
    )
    parser.add_argument(
        "--kept", type=Path, action="append", default=[], help="a checkpoint you kept"
    )
    given = parser.parse_args()
    try:
        held = verify(given.folder, given.key, given.kept)
    except (Wrong, OSError, ValueError, KeyError, EOFError, IndexError, TypeError) as error:
        print(f"WRONG: {error or type(error).__name__}")
        return 1
    for words in held:
        print(f"holds: {words}")
    if not given.kept:
        print("not excluded: that all of it was written anew and signed: give --kept, a checkpoint")
    print("not excluded: what came after the checkpoint, and another history shown to others")
    return 0


if __name__ == "__main__":
    sys.exit(main())

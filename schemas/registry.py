"""All contracts: every version of every event and command, its id, its fingerprint, its codec."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fastavro.schema import parse_schema, to_parsing_canonical_form

from domain.commands import COMMANDS
from domain.facts import FACTS
from domain.messages import MESSAGES
from schemas import codec

AVRO = Path(__file__).parent / "avro"
IDS = AVRO / "ids.json"
FINGERPRINT_BYTES = 8


class UnknownSchema(LookupError):
    """A type or version that no contract of this release names."""


@dataclass(frozen=True, slots=True)
class Contract:
    """One version of one event or command."""

    kind: str
    """`events`, `commands` or `messages`."""
    name: str
    version: int
    id: int
    """The number that stands for it on the wire."""
    fingerprint: bytes
    """The first 8 bytes of the SHA-256 of its parsing canonical form."""
    parsed: Any
    path: Path

    @property
    def type(self) -> str:
        """The name under which it is stored, such as `NodeJoined.v1`."""
        return f"{self.name}.v{self.version}"


class Registry:
    """The contracts in the package's own files; the newest version of a name writes."""

    def __init__(self, contracts: Iterator[Contract]) -> None:
        """Know these contracts."""
        self.by_type: dict[str, Contract] = {}
        self.newest: dict[str, Contract] = {}
        self.by_id: dict[int, Contract] = {}
        for contract in sorted(contracts, key=lambda c: (c.name, c.version)):
            self.by_type[contract.type] = contract
            self.newest[contract.name] = contract
            self.by_id[contract.id] = contract

    def encode(self, thing: Any) -> tuple[Contract, bytes]:  # noqa: ANN401 - any fact or command
        """The newest contract of a fact or command, and its body under it. Raises `Malformed`.

        The newest contract is the shape of the class: a contract test holds them together.
        """
        return self.newest[type(thing).__name__], codec.encode_newest(thing)

    def decode(self, type_name: str, body: bytes) -> Any:  # noqa: ANN401 - any fact or command
        """The fact or command that a body of a stored type holds.

        Raises `UnknownSchema` or `codec.Malformed`.
        """
        written = self.by_type.get(type_name)
        if written is None:
            raise UnknownSchema(type_name)
        newest = self.newest[written.name]
        read = None if newest is written else newest.parsed
        return codec.decode(written.parsed, _record_of(written), body, read)


def _record_of(contract: Contract) -> type:
    return _RECORDS[contract.kind][contract.name]


_RECORDS: Mapping[str, Mapping[str, type]] = {
    "events": FACTS,
    "commands": COMMANDS,
    "messages": MESSAGES,
}


def _load() -> Iterator[Contract]:
    ids: dict[str, int] = json.loads(IDS.read_text())
    for kind in _RECORDS:
        for path in sorted((AVRO / kind).glob("*.avsc")):
            name, version = path.stem.rsplit(".v", 1)
            schema = json.loads(path.read_text())
            canonical = to_parsing_canonical_form(schema)
            fingerprint = hashlib.sha256(canonical.encode()).digest()[:FINGERPRINT_BYTES]
            parsed = parse_schema(schema, named_schemas={})
            yield Contract(kind, name, int(version), ids[path.stem], fingerprint, parsed, path)


@cache
def registry() -> Registry:
    """The contracts of this release."""
    return Registry(_load())

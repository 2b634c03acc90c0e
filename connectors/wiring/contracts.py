"""The contracts of this release, for the verbs that list and show them."""

from schemas.registry import AVRO, registry


def listed() -> list[dict[str, object]]:
    """Each contract's name, version, id on the wire, kind and file."""
    return [
        {
            "name": contract.type,
            "version": contract.version,
            "id": contract.id,
            "kind": contract.kind,
            "fingerprint": contract.fingerprint.hex(),
            "file": str(contract.path.relative_to(AVRO)),
        }
        for contract in sorted(registry().by_type.values(), key=lambda c: c.id)
    ]


def text(name: str) -> str | None:
    """The Avro schema of a contract, by its type or, the newest one, by its bare name."""
    known = registry()
    contract = known.by_type.get(name) or known.newest.get(name)
    return contract.path.read_text() if contract else None

"""The envelope and the leaf: frozen bytes that a stranger can make again."""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from fastavro.schema import to_parsing_canonical_form

from domain.merkle import root_of
from schemas.codec import Malformed
from schemas.envelope import (
    Envelope,
    decode_envelope,
    encode_envelope,
    leaf_of,
    reference_encode,
)

ROOT = Path(__file__).parent.parent.parent
FORMAT = (ROOT / "docs" / "events-format.md").read_text()
VECTORS: list[dict[str, Any]] = json.loads(
    (ROOT / "tests" / "contracts" / "golden" / "envelopes.json").read_text()
)
BYTES = ("event_id", "schema_fingerprint", "command_id", "fingerprint")


def _envelope(said: dict[str, Any]) -> Envelope:
    values: dict[str, Any] = {n: bytes.fromhex(v) if n in BYTES else v for n, v in said.items()}
    return Envelope(**values)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: str(vector["is"]))
def test_the_golden_envelopes_have_their_bytes_and_leaves(vector: dict[str, Any]) -> None:
    envelope = _envelope(vector["fields"])
    encoded = bytes.fromhex(vector["envelope"])
    body = bytes.fromhex(vector["body"])
    assert encode_envelope(envelope) == reference_encode(envelope) == encoded
    assert decode_envelope(encoded) == envelope
    assert leaf_of(encoded, body).hex() == vector["leaf"]
    assert sha256(b"\0" + encoded + body).hexdigest() == vector["leaf"]


def test_the_page_tells_the_first_vector_as_it_is() -> None:
    for part in ("envelope", "body", "leaf"):
        assert VECTORS[0][part] in "".join(FORMAT.split()), part


def test_the_schema_of_the_envelope_is_frozen() -> None:
    schema = json.loads((ROOT / "schemas" / "avro" / "Envelope.avsc").read_text())
    canonical = to_parsing_canonical_form(schema)
    assert sha256(canonical.encode()).hexdigest() in "".join(FORMAT.split())


def test_the_page_names_every_field_in_its_order() -> None:
    places = [FORMAT.index(f"| `{name}` |") for name in Envelope.__dataclass_fields__]
    assert places == sorted(places)


def test_the_code_on_the_page_makes_the_leaf_and_the_root() -> None:
    (code,) = (part.split("```")[0] for part in FORMAT.split("```python\n")[1:])
    page: dict[str, Any] = {}
    exec(code, page)
    leaves = [
        page["leaf"](bytes.fromhex(vector["envelope"]), bytes.fromhex(vector["body"]))
        for vector in VECTORS
    ]
    assert [leaf.hex() for leaf in leaves] == [vector["leaf"] for vector in VECTORS]
    for size in range(len(leaves) + 1):
        assert page["root"](leaves[:size]) == root_of(leaves[:size])


ENVELOPE = _envelope(VECTORS[0]["fields"])


def test_the_border_between_envelope_and_body_cannot_be_moved() -> None:
    encoded, body = bytes.fromhex(VECTORS[0]["envelope"]), bytes.fromhex(VECTORS[0]["body"])
    for moved in range(1, len(body) + 1):
        assert leaf_of(encoded + body[:moved], body[moved:]).hex() == VECTORS[0]["leaf"]
        with pytest.raises(Malformed, match=f"{moved} bytes too many"):
            decode_envelope(encoded + body[:moved])


def test_an_envelope_that_is_cut_is_refused() -> None:
    encoded = encode_envelope(ENVELOPE)
    for length in range(len(encoded)):
        with pytest.raises(Malformed):
            decode_envelope(encoded[:length])


@pytest.mark.parametrize(
    "wrong",
    [
        {"event_id": b"short"},
        {"command_id": bytes(17)},
        {"schema_fingerprint": b""},
        {"seq": 1 << 63},
        {"recorded_at": -(1 << 63) - 1},
    ],
)
def test_an_envelope_that_could_not_be_read_is_not_written(wrong: dict[str, Any]) -> None:
    with pytest.raises((AssertionError, OverflowError)):
        encode_envelope(replace(ENVELOPE, **wrong))

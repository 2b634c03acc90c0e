"""Bytes that are not what their contract says, and values that no contract can hold."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from fastavro.schema import parse_schema

from domain.commands import COMMANDS
from domain.facts import FACTS
from domain.facts.reservation import ReservationHeld
from schemas import codec
from schemas.codec import Malformed
from schemas.registry import UnknownSchema, registry
from tests.examples import example

HELD = example(ReservationHeld)
BODY = registry().encode(HELD)[1]


def test_every_byte_that_is_missing_is_noticed() -> None:
    for length in range(len(BODY)):
        with pytest.raises(Malformed):
            registry().decode("ReservationHeld.v1", BODY[:length])


@pytest.mark.parametrize("more", [b"\0", BODY])
def test_bytes_behind_the_record_are_refused(more: bytes) -> None:
    with pytest.raises(Malformed, match=f"{len(more)} bytes too many"):
        registry().decode("ReservationHeld.v1", BODY + more)


@pytest.mark.parametrize("milli", [1 << 63, -(1 << 63) - 1, 1 << 200])
def test_a_number_beyond_64_bits_is_refused(milli: int) -> None:
    with pytest.raises(Malformed, match="ReservationHeld"):
        registry().encode(replace(HELD, milli=milli))


@pytest.mark.parametrize("milli", [(1 << 63) - 1, -(1 << 63)])
def test_the_last_numbers_of_64_bits_are_held(milli: int) -> None:
    held = replace(HELD, milli=milli)
    contract, body = registry().encode(held)
    assert registry().decode(contract.type, body) == held


@pytest.mark.parametrize(
    "wrong",
    [
        {"milli": None},
        {"milli": "8000"},
        {"milli": 1.5},
        {"pool_id": 7},
        {"pool_id": b"pool"},
        {"pool_id": None},
        {"pool_id": "\ud800"},
        {"segments": None},
        {"size": None},
        {"klass": "guaranteed"},
        {"tags": {"a": 1}},
        {"tags": {1: "a"}},
    ],
)
def test_a_value_of_another_type_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Malformed, match="ReservationHeld"):
        registry().encode(replace(HELD, **wrong))


def test_a_word_that_is_none_of_the_known_ones_is_refused() -> None:
    klass = HELD.klass.value.encode()
    assert klass in BODY
    with pytest.raises(Malformed):
        registry().decode("ReservationHeld.v1", BODY.replace(klass, b"x" * len(klass)))


def test_text_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(Malformed):
        registry().decode("ReservationHeld.v1", BODY.replace(b"pool_id", b"pool_\xff\xff"))


@pytest.mark.parametrize("name", ["ReservationHeld", "ReservationHeld.v99", "Nobody.v1", ""])
def test_a_contract_that_nobody_knows_is_named(name: str) -> None:
    with pytest.raises(UnknownSchema):
        registry().decode(name, BODY)


def test_a_body_is_not_read_as_another_type() -> None:
    for name in sorted({*FACTS, *COMMANDS} - {"ReservationHeld"}):
        try:
            assert registry().decode(f"{name}.v1", BODY) != HELD
        except Malformed:
            continue


def test_a_length_of_many_exabytes_is_refused_without_room_for_it() -> None:
    with pytest.raises(Malformed):
        registry().decode("ReservationHeld.v1", bytes.fromhex("feffffffffffffffff01") + BODY)


@dataclass(frozen=True, slots=True)
class Old:
    """As it was."""

    id: str


@dataclass(frozen=True, slots=True)
class New:
    """As it is."""

    id: str
    why: str | None = None


def test_an_old_body_is_read_with_the_defaults_of_what_was_added() -> None:
    fields = [{"name": "id", "type": "string"}]
    why = {"name": "why", "type": ["null", "string"], "default": None}
    old = parse_schema({"type": "record", "name": "T", "fields": fields}, named_schemas={})
    new = parse_schema({"type": "record", "name": "T", "fields": [*fields, why]}, named_schemas={})
    assert codec.decode(old, New, codec.encode(old, Old("a")), new) == New("a", None)
    assert codec.decode(new, Old, codec.encode(new, New("a", "b")), old) == Old("a")


def test_a_field_that_the_contract_lacks_is_not_dropped_in_silence() -> None:
    fields = [{"name": "id", "type": "string"}]
    old = parse_schema({"type": "record", "name": "T", "fields": fields}, named_schemas={})
    with pytest.raises(Malformed, match="why"):
        codec.encode(old, New("a", "b"))


def test_equal_things_have_equal_bytes_however_their_maps_were_made() -> None:
    turned = replace(HELD, tags=dict(reversed(list(HELD.tags.items()))))
    assert turned == HELD
    assert list(turned.tags) != list(HELD.tags)
    assert registry().encode(turned)[1] == BODY

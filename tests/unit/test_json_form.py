"""Commands as JSON: what is malformed has a pointer, what is parsed comes back the same."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.commands import COMMANDS, ChangePolicy, GrantQuota, RequestReservation
from domain.timespan import Instant
from schemas.json_form import (
    ITEMS_MAX,
    TEXT_CHARACTERS_MAX,
    BadField,
    instant_of,
    instant_text,
    json_schema,
    parse,
    render,
)

BOOK: dict[str, Any] = {
    "tenant_id": "team-a",
    "pool_id": "main",
    "size": {"gpus": 1},
    "duration_seconds": 60,
}


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"size": None}, "/size"),
        ({"size": 1}, "/size"),
        ({"size": {"gpus": True}}, "/size/gpus"),
        ({"size": {"gpus": 0.5}}, "/size/gpus"),
        ({"size": {"gpus": 2**63}}, "/size/gpus"),
        ({"size": {"gpus": -(2**63) - 1}}, "/size/gpus"),
        ({"start": "2030-01-01T09:00:00"}, "/start"),
        ({"start": "2030-13-01T09:00:00Z"}, "/start"),
        ({"start": 0}, "/start"),
        ({"klass": ["guaranteed"]}, "/klass"),
        ({"overflow": 1}, "/overflow"),
        ({"shape": {"models": "H100"}}, "/shape/models"),
        ({"shape": {"models": ["H100", 3]}}, "/shape/models/1"),
        ({"shape": {"models": ["x"] * (ITEMS_MAX + 1)}}, "/shape/models"),
        ({"tags": []}, "/tags"),
        ({"tags": {"a": None}}, "/tags/a"),
        ({"tags": {str(n): "" for n in range(ITEMS_MAX + 1)}}, "/tags"),
        ({"pool_id": "x" * (TEXT_CHARACTERS_MAX + 1)}, "/pool_id"),
        ({"pool_id": "a\0b"}, "/pool_id"),
        ({"pool_id": "\ud800"}, "/pool_id"),
        ({"tags": {"a/b": "\0"}}, "/tags/a~1b"),
        ({"colour": "red"}, "/colour"),
        ({"a/b~c": 1}, "/a~1b~0c"),
    ],
)
def test_what_is_malformed_is_pointed_at(change: dict[str, Any], pointer: str) -> None:
    with pytest.raises(BadField) as found:
        parse(RequestReservation, BOOK | change)
    assert found.value.pointer == pointer


@pytest.mark.parametrize("name", ["tenant_id", "pool_id", "size"])
def test_a_field_that_is_needed_is_missed(name: str) -> None:
    with pytest.raises(BadField) as found:
        parse(RequestReservation, {key: value for key, value in BOOK.items() if key != name})
    assert (found.value.pointer, found.value.problem) == (f"/{name}", "is missing")


@pytest.mark.parametrize("values", [None, [], "x", 1])
def test_a_body_is_an_object(values: Any) -> None:
    with pytest.raises(BadField) as found:
        parse(RequestReservation, values, "/body")
    assert found.value.pointer == "/body"


def test_a_nested_record_is_pointed_into() -> None:
    with pytest.raises(BadField) as found:
        parse(ChangePolicy, {"pool_id": "main", "policy": {"no_such": 1}})
    assert found.value.pointer == "/policy/no_such"


@given(st.integers(min_value=-62_135_596_800_000_000, max_value=253_402_300_799_999_999))
def test_an_instant_comes_back_from_its_text(at: int) -> None:
    assert instant_of(instant_text(at)) == at


@given(
    tenant=st.text(max_size=40).filter(str.isprintable),
    nominal=st.integers(min_value=-(2**63), max_value=2**63 - 1),
    start=st.none() | st.integers(min_value=0, max_value=4_481_136_000_000_000),
)
def test_a_command_comes_back_from_its_json(tenant: str, nominal: int, start: int | None) -> None:
    values = {
        "tenant_id": tenant,
        "pool_id": "main",
        "nominal_milli": nominal,
        "start": None if start is None else instant_text(start),
    }
    command = parse(GrantQuota, values)
    assert command.start == (None if start is None else Instant(start))
    assert parse(GrantQuota, render(command)) == command


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_schema_that_knows_all_its_fields(name: str) -> None:
    schema = json_schema(COMMANDS[name])
    assert schema["additionalProperties"] is False
    assert schema["properties"].keys() == COMMANDS[name].__dataclass_fields__.keys()
    assert set(schema.get("required", ())) <= schema["properties"].keys()

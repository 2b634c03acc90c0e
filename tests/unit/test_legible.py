"""Texts that no reader could write down are turned away before they become facts."""

import json
from dataclasses import replace
from typing import Any

import pytest

from domain.commands import COMMANDS, OpenPool, RequestReservation
from domain.refusals import Reason
from domain.submission import OutcomeKind
from schemas.json_form import BadField, parse
from schemas.legible import is_legible
from tests import builders as b
from tests.examples import example
from tests.world import World


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_plain_texts_are_legible(name: str) -> None:
    assert is_legible(example(COMMANDS[name]))


@pytest.mark.parametrize(
    "wrong",
    [
        {"pool_id": "a\0"},
        {"tags": {"a": "b\0"}},
        {"tags": {"a\0": "b"}},
        {"tags": {"a": "\ud800"}},
        {"shape": replace(example(RequestReservation).shape, models=("a", "b\n"))},
        {"shape": replace(example(RequestReservation).shape, same_level="\x1b[2J")},
    ],
)
def test_a_text_is_found_wherever_it_lies(wrong: dict[str, Any]) -> None:
    assert not is_legible(replace(example(RequestReservation), **wrong))


def test_letters_of_any_script_and_spaces_are_legible() -> None:
    assert is_legible(replace(example(OpenPool), site="Zürich 北京 é"))


def test_a_command_with_such_a_text_writes_nothing() -> None:
    world = World(nodes=0)
    before = world.sequencer.ledger.versions.copy()
    outcome = world.send(replace(b.open_pool(), site="a\0b"))
    assert outcome.kind is OutcomeKind.REJECTED
    assert outcome.refusal is not None
    assert outcome.refusal.reason is Reason.MALFORMED
    assert world.sequencer.ledger.versions == before


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (r'{"pool_id": "p", "site": "a\u0000b"}', "/site"),
        (r'{"pool_id": "p", "site": "\ud800"}', "/site"),
    ],
)
def test_json_tells_where_it_lies(body: str, pointer: str) -> None:
    with pytest.raises(BadField) as caught:
        parse(OpenPool, json.loads(body))
    assert caught.value.pointer == pointer


def test_json_tells_of_keys_and_values_of_maps() -> None:
    values = {"tenant_id": "a", "tags": {"k": "v\0"}}
    with pytest.raises(BadField) as caught:
        parse(COMMANDS["TagTenant"], values)
    assert caught.value.pointer == "/tags/k"

"""What a contract's next version may change, and what it may not."""

from typing import Any

import pytest

from schemas.compatibility import incompatibilities, unreadable


def _record(*fields: dict[str, Any], name: str = "Held") -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": "gpuledger", "fields": list(fields)}


def _field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


OLD = _record(_field("id", "string"), _field("milli", "long"))


def test_a_field_with_a_default_may_be_added() -> None:
    new = _record(*OLD["fields"], _field("why", ["null", "string"], default=None))
    assert incompatibilities({1: OLD, 2: new}) == []


def test_a_field_without_a_default_may_not_be_added() -> None:
    new = _record(*OLD["fields"], _field("why", "string"))
    assert incompatibilities({1: OLD, 2: new}) == [
        "v2 cannot read v1: /why: was not written and has no default"
    ]


def test_a_field_without_a_default_may_not_be_dropped() -> None:
    assert incompatibilities({1: OLD, 2: _record(OLD["fields"][0])}) == [
        "v1 cannot read v2: /milli: was not written and has no default"
    ]


def test_a_field_may_not_be_renamed() -> None:
    new = _record(_field("id", "string"), _field("amount", "long"))
    assert len(incompatibilities({1: OLD, 2: new})) == 2


def test_versions_that_are_not_neighbours_must_agree_too() -> None:
    one = _record(_field("id", "string"))
    two = _record(_field("id", "string"), _field("at", ["null", "long"], default=None))
    three = _record(_field("id", "string"), _field("at", ["null", "string"], default=None))
    assert "v3 cannot read v2: /at: long is none of the reader's choices" in incompatibilities(
        {1: one, 2: two, 3: three}
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("long", "string"),
        ("int", "long"),
        ("string", "bytes"),
        ("long", ["null", "long"]),
        ({"type": "array", "items": "string"}, {"type": "array", "items": "long"}),
        ({"type": "array", "items": "string"}, {"type": "map", "values": "string"}),
        ({"type": "map", "values": "string"}, {"type": "map", "values": "long"}),
        ({"type": "fixed", "name": "Id", "size": 16}, {"type": "fixed", "name": "Id", "size": 8}),
        (
            {"type": "enum", "name": "State", "symbols": ["up"]},
            {"type": "enum", "name": "State", "symbols": ["up", "down"]},
        ),
        (_record(_field("a", "long"), name="Piece"), _record(_field("b", "long"), name="Piece")),
        (_record(_field("a", "long"), name="Piece"), _record(_field("a", "long"), name="Part")),
    ],
)
def test_a_type_may_not_change(before: Any, after: Any) -> None:
    assert incompatibilities({1: _record(_field("x", before)), 2: _record(_field("x", after))})


def test_one_direction_of_a_wider_type_is_readable() -> None:
    narrow, wide = _record(_field("x", "int")), _record(_field("x", ["null", "long"]))
    assert unreadable(wide, narrow) == []
    assert unreadable(narrow, wide)


def test_a_type_that_is_named_once_is_compared_where_it_is_named_again() -> None:
    piece = _record(_field("width", "long"), name="Piece")
    once = _record(_field("first", piece), _field("second", "gpuledger.Piece"))
    longer = _record(*piece["fields"], _field("node", "string"), name="Piece")
    other = _record(_field("first", longer), _field("second", "gpuledger.Piece"))
    assert unreadable(once, once) == []
    places = [problem.split(":")[0] for problem in unreadable(other, once)]
    assert places == ["/first/node", "/second/node"]


def test_a_type_within_itself_is_compared_once() -> None:
    tree = _record(_field("below", {"type": "array", "items": "gpuledger.Held"}))
    assert unreadable(tree, tree) == []

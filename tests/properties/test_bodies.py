"""Any fact and command survives its bytes; any bytes are a fact or refused, never a crash."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.codec import Malformed
from schemas.registry import registry
from tests.examples import RECORDS, example, examples

QUIET = settings(deadline=None, max_examples=20, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", sorted(RECORDS))
@QUIET
@given(data=st.data())
def test_what_is_written_is_read_back(name: str, data: st.DataObject) -> None:
    thing: Any = data.draw(examples(RECORDS[name]))
    contract, body = registry().encode(thing)
    assert contract.name == name
    assert registry().decode(contract.type, body) == thing


@pytest.mark.parametrize("name", sorted(RECORDS))
@QUIET
@given(data=st.data())
def test_spoiled_bytes_are_read_or_refused(name: str, data: st.DataObject) -> None:
    contract, body = registry().encode(example(RECORDS[name]))
    at = data.draw(st.integers(0, len(body)))
    spoiled = body[:at] + data.draw(st.binary(max_size=12)) + body[at + 1 :]
    with suppress(Malformed):
        assert isinstance(registry().decode(contract.type, spoiled), RECORDS[name])

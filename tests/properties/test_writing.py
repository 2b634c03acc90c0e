"""The quick writer against fastavro, for every contract."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas import codec
from schemas.registry import registry
from tests.examples import RECORDS, examples


@pytest.mark.parametrize("name", sorted(RECORDS))
@settings(deadline=None, max_examples=20, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_quick_writer_writes_what_fastavro_writes(name: str, data: st.DataObject) -> None:
    thing: Any = data.draw(examples(RECORDS[name]))
    assert codec.encode_newest(thing) == codec.encode(registry().newest[name].parsed, thing)

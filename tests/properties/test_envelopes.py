"""The envelope's own encoder writes what fastavro writes."""

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.envelope import (
    Envelope,
    Glimpse,
    decode_envelope,
    encode_envelope,
    glimpse,
    reference_encode,
)
from tests.examples import LONGS, TEXTS

INTS = st.integers(-(1 << 31), (1 << 31) - 1)
IDS = st.binary(min_size=16, max_size=16)

ENVELOPES = st.builds(
    Envelope,
    shard=INTS,
    seq=LONGS,
    event_id=IDS,
    type=TEXTS,
    schema_fingerprint=st.binary(min_size=8, max_size=8),
    stream=TEXTS,
    stream_version=LONGS,
    recorded_at=LONGS,
    occurred_at=LONGS,
    principal=st.text(st.characters(codec="utf-8"), min_size=100, max_size=300),
    on_behalf_of=TEXTS,
    cause=TEXTS,
    command_id=IDS,
    key=TEXTS,
    fingerprint=st.binary(max_size=32),
    topic=TEXTS,
    partition=INTS,
    offset=LONGS,
)


@settings(deadline=None)
@given(ENVELOPES)
def test_an_envelope_has_the_bytes_that_fastavro_gives_it(envelope: Envelope) -> None:
    encoded = encode_envelope(envelope)
    assert encoded == reference_encode(envelope)
    assert decode_envelope(encoded) == envelope
    assert glimpse(encoded) == Glimpse(envelope.event_id, envelope.occurred_at)


@settings(deadline=None)
@given(ENVELOPES, ENVELOPES)
def test_no_envelope_begins_another(one: Envelope, other: Envelope) -> None:
    """So that the border between envelope and body is told by the bytes themselves."""
    first, second = encode_envelope(one), encode_envelope(other)
    assert first == second or not second.startswith(first)

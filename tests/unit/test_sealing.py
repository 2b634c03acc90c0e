"""Words under a subject's key."""

from hypothesis import given
from hypothesis import strategies as st

from connectors.keys.sealing import new_key, seal, unseal
from domain.ids import PrincipalId
from domain.sealed import BOX_BYTES_MAX, NOTE_CHARACTERS_MAX, Sealed

ANNA, BERT = PrincipalId("anna"), PrincipalId("bert")
KEY = bytes(range(64))


@given(st.text(min_size=1, max_size=NOTE_CHARACTERS_MAX))
def test_what_was_sealed_comes_out_again_and_its_box_has_a_limit(text: str) -> None:
    sealed = seal(KEY, ANNA, text)
    assert unseal(KEY, sealed) == text
    assert len(sealed.box) <= BOX_BYTES_MAX


def test_the_same_words_have_the_same_box_so_that_a_repeat_is_recognised() -> None:
    assert seal(KEY, ANNA, "fan noise") == seal(KEY, ANNA, "fan noise")
    assert seal(KEY, ANNA, "fan noise").box != seal(KEY, BERT, "fan noise").box


def test_nobody_reads_a_box_under_another_key_or_in_another_name() -> None:
    sealed = seal(KEY, ANNA, "fan noise")
    assert b"fan" not in sealed.box
    assert unseal(new_key(), sealed) is None
    assert unseal(KEY, Sealed(BERT, sealed.box)) is None


def test_a_box_by_rfc_5297_is_what_the_standard_says() -> None:
    """Appendix A.1, with its associated data in the subject's place, needs a 32-byte key."""
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

    key = bytes.fromhex("fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
    data = bytes.fromhex("101112131415161718191a1b1c1d1e1f2021222324252627")
    text = bytes.fromhex("112233445566778899aabbccddee")
    box = AESSIV(key).encrypt(text, [data])
    assert box.hex() == "85632d07c6e8f37f950acd320a2ecc9340c02b9690c4dc04daef7f6afe5c"

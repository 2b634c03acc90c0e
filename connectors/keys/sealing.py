"""Sealing text under a subject's key: AES-SIV (RFC 5297), as the `cryptography` library has it.

It needs no nonce, and the same words under the same key give the same box: a command that is sent
again under its key is recognised. What a box gives away is that two notes of one subject are equal.
"""

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from domain.ids import PrincipalId
from domain.sealed import Sealed

KEY_BYTES = 64


def new_key() -> bytes:
    """A random key for a subject."""
    return AESSIV.generate_key(KEY_BYTES * 8)


def seal(key: bytes, subject_id: PrincipalId, text: str) -> Sealed:
    """Text in its box; the subject is authenticated with it."""
    return Sealed(subject_id, AESSIV(key).encrypt(text.encode(), [subject_id.encode()]))


def unseal(key: bytes, sealed: Sealed) -> str | None:
    """The text of a box; None when it was sealed under another key, an erased one say."""
    try:
        return AESSIV(key).decrypt(sealed.box, [sealed.subject_id.encode()]).decode()
    except InvalidTag:
        return None

"""Signing checkpoints with Ed25519, and checking them with nothing but the public key."""

from dataclasses import dataclass
from typing import Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from domain.checkpoint import (
    BadNote,
    Checkpoint,
    VerifierKey,
    checkpoint_of,
    is_key_name,
    note,
    signatures_of,
)


@dataclass(frozen=True, slots=True)
class Signer:
    """A log's own key. Its name is the log's origin: whoever knows one log never takes another for it."""

    key: VerifierKey
    _private: Ed25519PrivateKey

    @classmethod
    def of(cls, origin: str, seed: bytes) -> Self:
        """From the 32 bytes of a private key. Raises `BadNote` for a name that no note may hold."""
        if not is_key_name(origin):
            raise BadNote(f"{origin!r} is no origin: it must have no space and no plus")
        private = Ed25519PrivateKey.from_private_bytes(seed)
        return cls(VerifierKey(origin, private.public_key().public_bytes_raw()), private)

    def sign(self, size: int, root: bytes) -> str:
        """A signed note: the root of the log at a size."""
        text = Checkpoint(self.key.name, size, root).text()
        return note(text, self.key, self._private.sign(text.encode()))


def verified(signed: str, key: VerifierKey) -> Checkpoint:
    """What a key has signed. Raises `BadNote` when it is not signed by it, or is no checkpoint."""
    text, signatures = signatures_of(signed, key)
    if not signatures:
        raise BadNote(f"the note bears no signature of {key.name} {key.id.hex()}")
    public = Ed25519PublicKey.from_public_bytes(key.public)
    for signature in signatures:
        try:
            public.verify(signature, text.encode())
        except InvalidSignature as error:
            raise BadNote(f"the signature of {key.name} does not hold") from error
    found = checkpoint_of(text)
    if found.origin != key.name:
        raise BadNote(f"the checkpoint is of {found.origin}, the key of {key.name}")
    return found

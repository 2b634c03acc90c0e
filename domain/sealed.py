"""Free text in the log: sealed, so that it can be forgotten although nothing is ever taken out.

A fact keeps only the box; whoever holds the key of its subject can read it. When the key is
shredded the text is gone for everybody, and hashes, proofs and sums stay as they are.
"""

from dataclasses import dataclass

from domain.ids import PrincipalId

NOTE_CHARACTERS_MAX = 1_000
BOX_BYTES_MAX = 4 * NOTE_CHARACTERS_MAX + 64


@dataclass(frozen=True, slots=True)
class Sealed:
    """Free text of a subject, sealed by AES-SIV (RFC 5297) under that subject's own key.

    The same text of the same subject has the same box, so that a command sent twice is the same.
    """

    subject_id: PrincipalId
    box: bytes

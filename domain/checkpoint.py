"""What a log says of itself at one size: a C2SP tlog-checkpoint, and the signed note around it.

A checkpoint is three lines: the log's origin, how many events it has, the root over them in base64.
A signed note is such a text, an empty line, and a line for each signature, which begins with an em
dash; a signature of another key is passed over, as the format demands.
"""

import base64
import binascii
from dataclasses import dataclass
from hashlib import sha256

from domain.merkle import HASH_BYTES

ED25519 = b"\1"
"""The algorithm's byte in a verifier key."""
KEY_ID_BYTES = 4
PUBLIC_BYTES = 32
NOTE_CHARACTERS_MAX = 65_536
DASH = "\N{EM DASH} "


class BadNote(ValueError):
    """A text that is no checkpoint, no signed note or no key; the words say what is wrong."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The root of a log of so many events."""

    origin: str
    size: int
    root: bytes

    def text(self) -> str:
        """The three lines."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"


def checkpoint_of(text: str) -> Checkpoint:
    """The inverse of `text`; lines behind the third one are extensions, and passed over.

    Raises `BadNote`.
    """
    lines = text.split("\n")
    if len(lines) < len(("origin", "size", "root", "")) or not lines[0]:
        raise BadNote("a checkpoint has an origin, a size and a root, a line each")
    size, root = lines[1], _octets(lines[2], "the root")
    if not (size.isascii() and size.isdigit()) or str(int(size)) != size:
        raise BadNote(f"{size!r} is no size")
    if len(root) != HASH_BYTES:
        raise BadNote(f"a root has {HASH_BYTES} bytes, not {len(root)}")
    return Checkpoint(lines[0], int(size), root)


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """Who signs: a name and an Ed25519 public key, as `name+id+key` (C2SP signed-note)."""

    name: str
    public: bytes

    @property
    def id(self) -> bytes:
        """Four bytes that tell keys apart."""
        return sha256(self.name.encode() + b"\n" + ED25519 + self.public).digest()[:KEY_ID_BYTES]

    def text(self) -> str:
        """As others keep it."""
        return f"{self.name}+{self.id.hex()}+{base64.b64encode(ED25519 + self.public).decode()}"


def verifier_key_of(text: str) -> VerifierKey:
    """The inverse of `text`. Raises `BadNote`."""
    parts = text.strip().split("+", 2)
    if len(parts) != len(("name", "id", "key")):
        raise BadNote("a verifier key is NAME+ID+KEY")
    name, key_id, encoded = parts
    key = _octets(encoded, "the key")
    if not is_key_name(name) or len(key) != 1 + PUBLIC_BYTES or key[:1] != ED25519:
        raise BadNote("the verifier key is of another kind than Ed25519, or cut")
    found = VerifierKey(name, key[1:])
    if found.id.hex() != key_id:
        raise BadNote(f"the verifier key's id is {found.id.hex()}, not {key_id}")
    return found


def is_key_name(name: str) -> bool:
    """Whether a name may stand in a note: not empty, without space and plus."""
    return name != "" and "+" not in name and not any(c.isspace() for c in name)


def note(text: str, key: VerifierKey, signature: bytes) -> str:
    """A text with its signature."""
    return f"{text}\n{DASH}{key.name} {base64.b64encode(key.id + signature).decode()}\n"


def signatures_of(signed: str, key: VerifierKey) -> tuple[str, list[bytes]]:
    """The text of a signed note, and what claims to be a key's signature of it. Raises `BadNote`."""
    if len(signed) > NOTE_CHARACTERS_MAX:
        raise BadNote(f"a note has at most {NOTE_CHARACTERS_MAX} characters")
    text, gap, lines = signed.rpartition("\n\n")
    if not gap or not lines.endswith("\n"):
        raise BadNote("a signed note is a text, an empty line, and a line for each signature")
    found: list[bytes] = []
    for line in lines[:-1].split("\n"):
        name, space, encoded = line.removeprefix(DASH).partition(" ")
        if not line.startswith(DASH) or not space:
            raise BadNote(f"{line[:80]!r} is no signature line")
        octets = _octets(encoded, "a signature")
        if name == key.name and octets[:KEY_ID_BYTES] == key.id:
            found.append(octets[KEY_ID_BYTES:])
    return text + "\n", found


def _octets(encoded: str, what: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadNote(f"{what} is no base64") from error

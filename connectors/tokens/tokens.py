"""Static tokens: random, shown once, kept as SHA-256 hashes with their principal."""

import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from domain.ids import PrincipalId, TenantId, derive
from domain.principal import Principal, Role

TOKEN_BYTES = 32
HASH_DIGITS_MIN = 8
"""So much of a hash names a token."""


def hash_of(token: str) -> str:
    """What is kept of a token."""
    return sha256(token.encode()).hexdigest()


@dataclass(slots=True)
class Tokens:
    """Principals by the hash of their token."""

    by_hash: dict[str, Principal]
    names: dict[str, str] = field(default_factory=dict)
    """What each is for, by its hash."""

    def principal(self, token: str) -> Principal | None:
        """Whose token it is; None for a stranger's."""
        return self.by_hash.get(hash_of(token))

    @classmethod
    def read(cls, path: Path) -> "Tokens":
        """The tokens of a file, as `write` left them."""
        rows = json.loads(path.read_text()) if path.exists() else {}
        return cls(
            {
                digest: Principal(
                    PrincipalId(row["principal"]),
                    Role(row["role"]),
                    TenantId(row["tenant"]) if row.get("tenant") else None,
                )
                for digest, row in rows.items()
            },
            {digest: row.get("name", "") for digest, row in rows.items()},
        )

    def write(self, path: Path) -> None:
        """Keep the hashes."""
        rows = {
            digest: {
                "name": self.names.get(digest, ""),
                "principal": p.id,
                "role": p.role.value,
                "tenant": p.tenant_id or "",
            }
            for digest, p in self.by_hash.items()
        }
        write_private(path, json.dumps(rows, indent=2) + "\n")

    def issue(
        self, who: PrincipalId, role: Role, tenant_id: TenantId | None = None, name: str = ""
    ) -> str:
        """A new token for a principal; only its hash is kept."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self.by_hash[hash_of(token)] = Principal(who, role, tenant_id)
        self.names[hash_of(token)] = name
        return token

    def revoke(self, whose: str) -> list[str]:
        """Take back those of a name or principal, or the one whose hash begins so; their hashes."""
        taken = [
            digest
            for digest, who in self.by_hash.items()
            if whose in {self.names.get(digest), who.id}
            or (len(whose) >= HASH_DIGITS_MIN and digest.startswith(whose))
        ]
        for digest in taken:
            del self.by_hash[digest]
            self.names.pop(digest, None)
        return taken

    def issue_to_all(self, secret: bytes, tenants: Sequence[str] = ()) -> dict[str, str]:
        """A new token for one principal of each role, and for one of each tenant, by their names.

        Who they are follows from the secret: keys that they used are theirs after a restart too.
        Those that they had before are no good any more.
        """
        issued: dict[str, str] = {}
        names = [role.value for role in Role] + [f"tenant/{name}" for name in tenants]
        for name in names:
            self.revoke(principal_of(secret, name))
        for role in Role:
            if role is not Role.TENANT:
                who = principal_of(secret, role.value)
                issued[role.value] = self.issue(who, role, name=role.value)
        for name in tenants:
            who = principal_of(secret, f"tenant/{name}")
            issued[name] = self.issue(who, Role.TENANT, TenantId(name), name)
        return issued


class TokenFile:
    """The tokens of a file as it is now: what is added or revoked holds from the next call on."""

    def __init__(self, path: Path) -> None:
        """Read when it is first asked."""
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._tokens = Tokens({})

    def principal(self, token: str) -> Principal | None:
        """Whose token it is; None for a stranger's."""
        try:
            stat = self._path.stat()
        except FileNotFoundError:
            return None
        if self._seen != (stat.st_mtime_ns, stat.st_ino):
            self._tokens = Tokens.read(self._path)
            self._seen = (stat.st_mtime_ns, stat.st_ino)
        return self._tokens.principal(token)


def principal_of(secret: bytes, name: str) -> PrincipalId:
    """Who bears a name: an id that tells nothing of it to those who do not know the secret."""
    return PrincipalId(derive(secret, name))


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write(text)
    fresh.rename(path)

"""Static tokens: random, shown once, kept as SHA-256 hashes with their principal."""

import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from domain.ids import PrincipalId, TenantId, derive
from domain.principal import Principal, Role

TOKEN_BYTES = 32


def hash_of(token: str) -> str:
    """What is kept of a token."""
    return sha256(token.encode()).hexdigest()


@dataclass(slots=True)
class Tokens:
    """Principals by the hash of their token."""

    by_hash: dict[str, Principal]

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
            }
        )

    def write(self, path: Path) -> None:
        """Keep the hashes."""
        rows = {
            digest: {"principal": p.id, "role": p.role.value, "tenant": p.tenant_id or ""}
            for digest, p in self.by_hash.items()
        }
        write_private(path, json.dumps(rows, indent=2) + "\n")

    def issue(self, who: PrincipalId, role: Role, tenant_id: TenantId | None = None) -> str:
        """A new token for a principal; only its hash is kept."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self.by_hash[hash_of(token)] = Principal(who, role, tenant_id)
        return token

    def issue_to_all(self, secret: bytes, tenants: Sequence[str] = ()) -> dict[str, str]:
        """A new token for one principal of each role, and for one of each tenant, by their names.

        Who they are follows from the secret: keys that they used are theirs after a restart too.
        """
        issued: dict[str, str] = {}
        for role in Role:
            if role is not Role.TENANT:
                issued[role.value] = self.issue(_principal(secret, role.value), role)
        for name in tenants:
            who = _principal(secret, f"tenant/{name}")
            issued[name] = self.issue(who, Role.TENANT, TenantId(name))
        return issued


def _principal(secret: bytes, name: str) -> PrincipalId:
    return PrincipalId(derive(secret, name))


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write(text)
    fresh.rename(path)

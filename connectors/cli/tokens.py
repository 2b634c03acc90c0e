"""Verbs of tokens: who may speak to the service that runs over a data folder, and as whom."""

from pathlib import Path
from typing import Annotated

import typer

from connectors.cli.console import REFUSED, USED_WRONGLY, fail, folder, group, options, out, tell
from connectors.tokens.tokens import Tokens, principal_of
from domain.ids import TenantId, is_name
from domain.principal import Role

token, token_verb = group("token", "Static tokens of a data folder: add, list, revoke")

FILE = "tokens.json"
Name = Annotated[str, typer.Argument(help="whose: a name that says what it is for")]


def _file() -> Path:
    path = folder() / FILE
    if not path.exists():
        fail(REFUSED, f"{folder()} has no tokens", "'gpuledger dev' or 'gpuledger init' makes it")
    return path


@token_verb()
def add(
    name: Name,
    role: Annotated[Role, typer.Option(help="what it may do")],
    tenant: Annotated[str, typer.Option(help="of whom, for the role tenant")] = "",
) -> None:
    """Make a token and show it this once; a name that has one gets another beside it."""
    if (role is Role.TENANT) != bool(tenant):
        fail(USED_WRONGLY, "the role tenant, and no other, needs --tenant")
    for word in filter(None, (name, tenant)):
        if not is_name(word):
            fail(USED_WRONGLY, f"{word!r} is no name", "use letters, digits and any of - _ . :")
    path = _file()
    tokens = Tokens.read(path)
    who = principal_of(bytes.fromhex((folder() / "principals.secret").read_text()), name)
    known = next((p for p in tokens.by_hash.values() if p.id == who), None)
    tenant_id = TenantId(tenant) if tenant else None
    if known is not None and (known.role, known.tenant_id) != (role, tenant_id):
        fail(REFUSED, f"{name} is a {known.role.value}", "revoke its tokens first, or use another")
    made = tokens.issue(who, role, tenant_id, name)
    tokens.write(path)
    content = {"name": name, "principal": who, "role": role.value, "token": made}
    if options.json:
        tell(content, (), ())
        return
    out.print(f"{name} is {who}, {role.value}{f' of {tenant}' if tenant else ''}", highlight=False)
    out.print(made, highlight=False)


@token_verb("list")
def list_tokens() -> None:
    """Every token by the beginning of its hash, and whose it is; the service hears of changes at once."""
    tokens = Tokens.read(_file())
    rows = [
        {
            "name": tokens.names.get(digest, ""),
            "principal": who.id,
            "role": who.role.value,
            "tenant": who.tenant_id or "",
            "sha256": digest[:12],
        }
        for digest, who in sorted(tokens.by_hash.items(), key=lambda item: item[1].role.value)
    ]
    tell({"tokens": rows}, rows, ("name", "principal", "role", "tenant", "sha256"))


@token_verb()
def revoke(
    name: Annotated[str, typer.Argument(help="whose: all of its tokens, or one by its hash")],
) -> None:
    """Take tokens back: whoever bears one is a stranger from now on."""
    path = _file()
    tokens = Tokens.read(path)
    taken = tokens.revoke(name)
    if not taken:
        fail(REFUSED, f"no token is {name}'s", "'gpuledger token list' shows all")
    tokens.write(path)
    tell(
        {"revoked": taken},
        [{"revoked": digest[:12]} for digest in taken],
        ("revoked",),
        f"{len(taken)} of {name}",
    )

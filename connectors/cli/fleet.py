"""Verbs of the fleet: nodes, pools, tenants, quota."""

from typing import Annotated

import typer

from connectors.cli.console import (
    REFUSED,
    Note,
    api,
    command,
    duration,
    group,
    instant,
    own_tenant,
    refusals_told,
    tell,
)

node, node_verb = group(
    "node",
    "Nodes: add, list, health, cordon, drain, maintain, test, suspect, reboot, fail, recover, retire",
)
pool, pool_verb = group("pool", "Pools: open, list, close")
tenant, tenant_verb = group("tenant", "Tenants: register, list, close")
quota, quota_verb = group("quota", "Quota: list, usable, check, grant")

NodeName = Annotated[str, typer.Argument(help="the node's name")]
Code = Annotated[str, typer.Option(help="why, as a short code; it is recorded")]
PoolName = Annotated[str, typer.Option("--pool", help="the pool")]


@node_verb("list")
def list_nodes() -> None:
    """All nodes and their health."""
    with refusals_told():
        content = api().get("/v1/nodes")
    columns = ("node_id", "pool_id", "state", "model", "gpus", "failed_slots", "cause", "since")
    tell(content, content["nodes"], columns)


@node_verb("health")
def node_health() -> None:
    """What ails nodes; a tenant sees those on which it holds units now."""
    with refusals_told():
        content = api().get("/v1/node-health")
    columns = ("node_id", "pool_id", "state", "failed_slots", "cause", "since")
    tell(content, content["nodes"], columns)


@node_verb("add")
def add_node(
    name: NodeName,
    model: Annotated[str, typer.Option(help="the GPU model")] = "H100",
    gpus: Annotated[int, typer.Option(help="GPUs of the node")] = 8,
    pool_id: PoolName = "main",
) -> None:
    """Make a machine part of a pool."""
    command("/v1/nodes", {"pool_id": pool_id, "node_id": name, "model": model, "gpus": gpus})


@node_verb("cordon")
def cordon(name: NodeName, reason: Code = "", note: Note = "") -> None:
    """Give it no new holder."""
    command(f"/v1/nodes/{name}/cordon", {"reason": reason, "note": note or None})


@node_verb("uncordon")
def uncordon(name: NodeName) -> None:
    """Let it serve again."""
    command(f"/v1/nodes/{name}/uncordon", {})


@node_verb("drain")
def drain(name: NodeName, reason: Code = "", note: Note = "") -> None:
    """Empty it: move what has not started, let what runs end."""
    command(f"/v1/nodes/{name}/drain", {"reason": reason, "note": note or None})


@node_verb("retire")
def retire(name: NodeName) -> None:
    """Take it out of the fleet for good."""
    command(f"/v1/nodes/{name}/retire", {})


@node_verb("maintenance")
def maintenance(
    name: NodeName,
    start: Annotated[str, typer.Option("--from", help="tomorrow 09:00, ISO")],
    end: Annotated[str, typer.Option("--to", help="tomorrow 12:00, ISO")],
    pool_id: PoolName = "main",
) -> None:
    """Take it out for a span."""
    body = {"pool_id": pool_id, "node_id": name, "start": instant(start), "end": instant(end)}
    command("/v1/maintenances", body)


@node_verb("fail")
def fail_node(
    name: NodeName,
    cause: Annotated[str, typer.Option(help="a short code")] = "operator",
    slot: Annotated[list[int] | None, typer.Option(help="only these GPUs")] = None,
    pool_id: PoolName = "main",
) -> None:
    """Report that it, or some of its GPUs, failed."""
    tell_health(name, pool_id, "failed", cause, slots=slot or [])


@node_verb("test")
def test_node(name: NodeName) -> None:
    """Take it out for its acceptance tests; nobody may hold it."""
    command(f"/v1/nodes/{name}/test", {})


@node_verb("suspect")
def suspect_node(
    name: NodeName,
    cause: Annotated[str, typer.Option(help="a short code")] = "lost-contact",
    pool_id: PoolName = "main",
) -> None:
    """Report that it is silent: after the pool's grace it is failed."""
    tell_health(name, pool_id, "suspected", cause)


@node_verb("reboot")
def reboot_node(
    name: NodeName,
    planned: Annotated[bool, typer.Option("--planned", help="with the longer grace")] = False,
    pool_id: PoolName = "main",
) -> None:
    """Report that it boots anew: its holders keep their units, what ran there is lost."""
    tell_health(name, pool_id, "rebooting", "planned-reboot" if planned else "reboot")


@node_verb("recover")
def recover_node(
    name: NodeName,
    slot: Annotated[list[int] | None, typer.Option(help="only these GPUs")] = None,
    boot_id: Annotated[str, typer.Option(help="of the boot that runs now")] = "",
    pool_id: PoolName = "main",
) -> None:
    """Report that it, or some of its GPUs, is back; another boot id means that its work is lost."""
    tell_health(name, pool_id, "recovered", "operator", slots=slot or [], boot_id=boot_id)


def tell_health(name: str, pool_id: str, health: str, cause: str, **more: object) -> None:
    """Send a health report."""
    body = {"pool_id": pool_id, "node_id": name, "health": health, "cause": cause}
    command("/v1/health-reports", body | more)


@pool_verb("list")
def list_pools() -> None:
    """All pools."""
    with refusals_told():
        content = api().get("/v1/pools")
    tell(content, content["pools"], ("pool_id", "site", "state", "nodes", "gpus", "frozen"))


@pool_verb("open")
def open_pool(
    name: str,
    site: str = "",
    breaker_percent: Annotated[
        int, typer.Option(help="more of its GPUs lost or preempted freezes it; 100 for never")
    ] = 100,
    breaker_minutes: Annotated[int, typer.Option(help="... within so many minutes")] = 10,
) -> None:
    """Let a pool take reservations."""
    policy = {"breaker_percent": breaker_percent, "breaker_seconds": breaker_minutes * 60}
    command("/v1/pools", {"pool_id": name, "site": site, "policy": policy})


@pool_verb("close")
def close_pool(name: str) -> None:
    """Take no more reservations in an empty pool."""
    command(f"/v1/pools/{name}/close", {})


@tenant_verb("list")
def list_tenants() -> None:
    """All tenants."""
    with refusals_told():
        content = api().get("/v1/tenants")
    tell(content, content["tenants"], ("tenant_id", "parent_id", "state"))


@tenant_verb("register")
def register(name: str, parent: str = "") -> None:
    """Let a team hold quota and reserve."""
    command("/v1/tenants", {"tenant_id": name, "parent_id": parent or None})


@tenant_verb("close")
def close_tenant(name: str) -> None:
    """Let a team book no more."""
    command(f"/v1/tenants/{name}/close", {})


@quota_verb("list")
def list_quota() -> None:
    """All grants that you may see, and what of them is held now."""
    with refusals_told():
        content = api().get("/v1/quota")
    columns = (
        "grant_id",
        "tenant_id",
        "pool_id",
        "nominal_milli",
        "committed_milli",
        "borrow_milli",
        "borrowed_milli",
        "start",
        "end",
    )
    tell(content, content["quota"], columns)


@quota_verb("usable")
def usable(
    tenant: Annotated[str, typer.Option(help="whose; the token's own")] = "",
    pool_id: PoolName = "main",
    start: Annotated[str, typer.Option("--from", help="now, tomorrow 09:00, ISO")] = "now",
    length: Annotated[str, typer.Option("--for", help="90m, 4h, 2d")] = "1h",
    zone: Annotated[str, typer.Option(help="an IANA zone for --from")] = "",
) -> None:
    """How much may still be booked over a window, and whose limit binds."""
    with refusals_told():
        content = api().get(
            "/v1/quota/usable",
            tenant_id=tenant or own_tenant(),
            pool_id=pool_id,
            start=instant(start, zone),
            duration_seconds=duration(length),
        )
    rows = [
        {
            "class": each["class"],
            "usable_gpus": f"{each['milli'] / 1000:g}",
            "bound_by": (each["binding"] or {}).get("tenant_id", "no grant"),
            "at": (each["binding"] or {}).get("at", ""),
        }
        for each in content["usable"]
    ]
    title = (
        f"{content['tenant_id']} in {content['pool_id']}, {content['start']} to {content['end']}"
    )
    tell(content, rows, ("class", "usable_gpus", "bound_by", "at"), title)


@quota_verb("check")
def check_quota() -> None:
    """Grants that somebody should look at; exit status 1 when there are any."""
    with refusals_told():
        content = api().get("/v1/quota/oddities")
    tell(content, content["oddities"], ("kind", "pool_id", "tenant_id", "milli", "limit_milli"))
    if content["oddities"]:
        raise typer.Exit(REFUSED)


@quota_verb("grant")
def grant(
    name: Annotated[str, typer.Argument(help="the tenant")],
    gpus: Annotated[int, typer.Option(help="nominal GPUs")],
    borrow: Annotated[int, typer.Option(help="GPUs that may be borrowed beyond")] = 0,
    lend: Annotated[int, typer.Option(help="GPUs of it that others' use is credited for")] = 0,
    pool_id: PoolName = "main",
) -> None:
    """Entitle a tenant to GPUs from now on."""
    body = {
        "tenant_id": name,
        "pool_id": pool_id,
        "nominal_milli": gpus * 1000,
        "borrow_milli": borrow * 1000,
        "lend_milli": lend * 1000,
    }
    command("/v1/quota", body)

"""Reads that only some roles may do."""

from collections.abc import Awaitable, Callable, Mapping

from fastapi import FastAPI, Request
from fastapi.responses import Response

from connectors.http.problems import problem
from connectors.http.query import storable
from domain.access import READ_VERBS
from domain.principal import Principal

Handler = Callable[[Request], Awaitable[Response]]


def allowed(verb: str, handler: Handler) -> Handler:
    """A read for those whose role has its verb."""

    async def read(request: Request) -> Response:
        principal: Principal = request.state.principal
        if principal.role not in READ_VERBS[verb].roles:
            detail = f"{principal.role.value} may not read {verb}"
            return problem(403, "forbidden", detail, reason="forbidden")
        storable(request)
        return await handler(request)

    read.__doc__ = handler.__doc__
    return read


def add_reads(app: FastAPI, verbs: Mapping[str, str], reads: object) -> None:
    """Register reads: which path is which verb of READ_VERBS, each a method of that name."""
    for path, verb in verbs.items():
        app.add_api_route(path, allowed(verb, getattr(reads, verb)), methods=["GET"], name=verb)


def told_of(verbs: Mapping[str, str], reads: type) -> dict[str, str]:
    """What each read tells, in a line, by its verb."""
    return {
        verb: (getattr(reads, verb).__doc__ or "").strip().split("\n")[0] for verb in verbs.values()
    }

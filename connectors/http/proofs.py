"""What the log proves of itself: its signed checkpoint, and how events and former sizes lie in it."""

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from connectors.http.allowed import add_reads, told_of
from connectors.http.query import number
from domain.proofs import NoSuchSize
from schemas.json_form import BadField

PROOFS = {
    "/v1/log/key": "verifier_key",
    "/v1/log/checkpoint": "checkpoint",
    "/v1/log/inclusion": "inclusion",
    "/v1/log/consistency": "consistency",
}
"""Which path is which verb of READ_VERBS; each is a method of the same name below."""


@dataclass(frozen=True, slots=True)
class Inclusion:
    """That an event is the leaf at `seq - 1` of the log of a size."""

    seq: int
    size: int
    leaf: bytes
    root: bytes
    hashes: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Consistency:
    """That the log of a size begins with the log of an earlier one."""

    earlier: int
    earlier_root: bytes
    size: int
    root: bytes
    hashes: Sequence[bytes]


class Prover(Protocol):
    """Where proofs are made. Everything raises `JournalUnavailable` and `NoSuchSize`."""

    def verifier_key(self) -> str:
        """The public key, as `name+id+key`."""
        ...

    def checkpoint(self) -> str:
        """The signed note of the log as it is now."""
        ...

    def inclusion(self, seq: int, size: int | None) -> Inclusion:
        """Of an event in the log of a size, or as it is now."""
        ...

    def consistency(self, earlier: int, size: int | None) -> Consistency:
        """Of an earlier size with a later one, or with the log as it is now."""
        ...


def add(app: FastAPI, prover: Prover) -> None:
    """Register every proof."""
    proofs = _Proofs(prover)
    add_reads(app, PROOFS, proofs)


class _Proofs:
    def __init__(self, prover: Prover) -> None:
        self._prover = prover

    async def verifier_key(self, _: Request) -> Response:
        """The key that signs checkpoints, as C2SP's signed notes have it: keep it elsewhere."""
        return JSONResponse({"key": await asyncio.to_thread(self._prover.verifier_key)})

    async def checkpoint(self, _: Request) -> Response:
        """The log's size and root now, signed (C2SP tlog-checkpoint): keep it where operators cannot write."""
        return PlainTextResponse(await asyncio.to_thread(self._prover.checkpoint))

    async def inclusion(self, request: Request) -> Response:
        """That the event `seq` lies in the log of `size`, or as it is now (RFC 6962 audit path)."""
        seq, size = _needed(request, "seq"), _size(request)
        found = await _made(self._prover.inclusion, seq, size)
        content = {"seq": found.seq, "size": found.size, "leaf": _text(found.leaf)}
        return JSONResponse(content | _path(found))

    async def consistency(self, request: Request) -> Response:
        """That the log of `size`, or as it is now, begins with that of `from` (RFC 6962)."""
        earlier, size = _needed(request, "from"), _size(request)
        found = await _made(self._prover.consistency, earlier, size)
        content = {"from": found.earlier, "from_root": _text(found.earlier_root)}
        return JSONResponse(content | {"size": found.size} | _path(found))


TOLD = told_of(PROOFS, _Proofs)
"""What each read tells, in a line, by its verb."""


async def _made(make: Any, *what: Any) -> Any:  # noqa: ANN401 - either kind of proof
    try:
        return await asyncio.to_thread(make, *what)
    except NoSuchSize as error:
        raise BadField("/size", str(error)) from error


def _path(found: Inclusion | Consistency) -> dict[str, Any]:
    return {"root": _text(found.root), "hashes": [_text(each) for each in found.hashes]}


def _text(octets: bytes) -> str:
    return base64.b64encode(octets).decode()


def _needed(request: Request, name: str) -> int:
    if name not in request.query_params:
        raise BadField(f"/{name}", "is needed")
    return number(request, name, 0)


def _size(request: Request) -> int | None:
    return number(request, "size", 0) if "size" in request.query_params else None

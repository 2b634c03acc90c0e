"""The directory over HTTP: who a principal is, beside the log and never in it."""

from typing import Protocol

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from connectors.http.commanding import body_of
from connectors.http.problems import problem
from domain.access import READ_VERBS
from domain.ids import PrincipalId, is_name
from domain.principal import Entry, Principal
from schemas.json_form import BadField, render, text_of

TEXT_CHARACTERS_MAX = 200
PATH = "/v1/directory/{subject_id}"


class Directory(Protocol):
    """Where names are kept."""

    async def entry(self, subject_id: PrincipalId) -> Entry | None:
        """Who a subject is, as far as it is known."""
        ...

    async def describe(self, entry: Entry) -> None:
        """Write who a subject is."""
        ...


def add(app: FastAPI, directory: Directory) -> None:
    """Register the look-up and the change of an entry."""

    async def entry(request: Request) -> Response:
        """Who a principal is."""
        who: Principal = request.state.principal
        subject = _subject(request)
        if who.role not in READ_VERBS["directory"].roles and who.id != subject:
            return problem(403, "forbidden", f"{who.role.value} may not read the directory")
        found = await directory.entry(subject)
        if found is None:
            return problem(404, "not-found", f"the directory does not know {subject}")
        return JSONResponse(render(found))

    async def describe(request: Request) -> Response:
        """Write who a principal is; its name and address are erased with it."""
        who: Principal = request.state.principal
        if who.role not in READ_VERBS["describe"].roles:
            return problem(403, "forbidden", f"{who.role.value} may not change the directory")
        values = await body_of(request)
        strange = values.keys() - {"name", "email"}
        if strange:
            raise BadField(f"/{min(strange)}", "no such field; there are email, name")
        name, email = (_text(values, field) for field in ("name", "email"))
        if not name:
            raise BadField("/name", "is missing")
        changed = Entry(_subject(request), name, email)
        await directory.describe(changed)
        return JSONResponse(render(changed))

    app.add_api_route(PATH, entry, methods=["GET"], name="directory")
    app.add_api_route(PATH, describe, methods=["PUT"], name="describe")


def _subject(request: Request) -> PrincipalId:
    subject = str(request.path_params["subject_id"])
    if not is_name(subject):
        raise BadField("/subject_id", "is no id of a principal")
    return PrincipalId(subject)


def _text(values: dict[str, object], field: str) -> str:
    text = text_of(values.get(field, ""), f"/{field}")
    if len(text) > TEXT_CHARACTERS_MAX:
        raise BadField(f"/{field}", f"must be at most {TEXT_CHARACTERS_MAX} characters")
    return text

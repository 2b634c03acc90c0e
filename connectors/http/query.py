"""What stands in a query: numbers, flags and instants, with a pointer to what is wrong."""

from fastapi import Request

from schemas.json_form import LONG_MAX, BadField, instant_of

DIGITS_MAX = 19
"""A number of 64 bits has no more."""


def whole(text: str, name: str) -> int:
    """A whole number that is not negative. Raises `BadField`."""
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX):
        raise BadField(f"/{name}", "must be a whole number that is not negative")
    number = int(text)
    if number > LONG_MAX:
        raise BadField(f"/{name}", "must fit into 64 bits")
    return number


def number(request: Request, name: str, default: int) -> int:
    """A number of a query. Raises `BadField`."""
    text = request.query_params.get(name, "")
    return whole(text, name) if text else default


def flag(request: Request, name: str) -> bool:
    """A yes or no of a query; anything else is refused, not taken for a no. Raises `BadField`."""
    text = request.query_params.get(name, "false")
    if text not in {"true", "false"}:
        raise BadField(f"/{name}", "must be true or false")
    return text == "true"


def instant(request: Request, name: str, default: int) -> int:
    """An instant of a query. Raises `BadField`."""
    text = request.query_params.get(name, "")
    return moment(text, name) if text else default


def moment(text: str, name: str) -> int:
    """An instant as RFC 3339 text. Raises `BadField`."""
    try:
        return int(instant_of(text))
    except (ValueError, OverflowError) as error:
        raise BadField(f"/{name}", f"must be an RFC 3339 instant: {error}") from error


def storable(request: Request) -> None:
    """Nothing in a query or a path that no store could hold. Raises `BadField`."""
    for name, text in (*request.query_params.items(), *request.path_params.items()):
        if "\0" in str(text):
            raise BadField(f"/{name}", "must have no NUL")

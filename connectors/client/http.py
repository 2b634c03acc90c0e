"""The HTTP face from the other side, for the command line."""

import uuid
from collections.abc import Iterator
from typing import Any

import httpx

TIMEOUT_SECONDS = 30.0
TIME_HEADER = "Virtual-Time"
"""When a call is made, for a service on a virtual clock."""


class Unreachable(Exception):
    """No service answers at the address."""


class Refused(Exception):
    """The service said no; `problem` is its RFC 9457 problem."""

    def __init__(self, problem: dict[str, Any]) -> None:
        """With the problem that it sent."""
        super().__init__(problem.get("detail", ""))
        self.problem = problem


class Api:
    """Calls with a token; each POST bears a key, a new one unless the caller names it."""

    def __init__(self, url: str, token: str, at: str = "") -> None:
        """Of a service at an address; `at` is when, for one on a virtual clock."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.url = url
        self.at = at
        self._http = httpx.Client(base_url=url, headers=headers, timeout=TIMEOUT_SECONDS)

    def get(self, path: str, **query: Any) -> dict[str, Any]:  # noqa: ANN401 - query values
        """The JSON of a read. Raises `Refused`, `Unreachable`."""
        given = {name: value for name, value in query.items() if value is not None}
        return self._call("GET", path, params=given)

    def text(self, path: str, **query: Any) -> str:  # noqa: ANN401 - query values
        """The text of a read, such as a picture. Raises `Refused`, `Unreachable`."""
        given = {name: value for name, value in query.items() if value is not None}
        return self._answer("GET", path, params=given).text

    def post(
        self, path: str, body: dict[str, Any], key: str = "", *, dry_run: bool = False
    ) -> dict[str, Any]:
        """The JSON of a command's outcome. Raises `Refused`, `Unreachable`."""
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        query = {"dry_run": "true"} if dry_run else {}
        return self._call("POST", path, json=body, headers=headers, params=query)

    def put(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The JSON of what was written. Raises `Refused`, `Unreachable`."""
        return self._call("PUT", path, json=body)

    def _call(self, method: str, path: str, **how: Any) -> dict[str, Any]:  # noqa: ANN401 - httpx's own
        return self._json(self._answer(method, path, **how))

    def _answer(self, method: str, path: str, **how: Any) -> httpx.Response:  # noqa: ANN401 - as above
        headers = how.pop("headers", {}) | ({TIME_HEADER: self.at} if self.at else {})
        try:
            response = self._http.request(method, path, headers=headers, **how)
        except httpx.HTTPError as error:
            raise Unreachable(f"nothing answers at {self.url}: {error}") from error
        if response.is_error:
            raise Refused(self._json(response))
        return response

    def _json(self, response: httpx.Response) -> dict[str, Any]:
        try:
            content: dict[str, Any] = response.json()
        except ValueError as error:
            raise Unreachable(f"{self.url} does not speak our JSON") from error
        return content

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def events(self, after: int) -> Iterator[str]:
        """The data of live events, as JSON texts. Raises `Refused`, `Unreachable`."""
        headers = {"Accept": "text/event-stream"}
        try:
            with self._http.stream(
                "GET", "/v1/events", params={"after": after}, headers=headers, timeout=None
            ) as response:
                if response.is_error:
                    response.read()
                    raise Refused(response.json())
                for line in response.iter_lines():
                    if line.startswith("data: "):
                        yield line.removeprefix("data: ")
            raise Unreachable(f"{self.url} ended the stream of events")
        except httpx.HTTPError as error:
            raise Unreachable(f"nothing answers at {self.url}: {error}") from error

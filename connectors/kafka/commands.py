"""Commands as Kafka records: who speaks, under which key, and what is asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from connectors.kafka.records import BadRecord, Header, header, unwire
from domain.ids import PrincipalId
from domain.principal import Principal, Role
from domain.record import IngressPlace
from domain.submission import UNREADABLE, Submission
from schemas.registry import Registry

TOKEN = "lg_token"  # noqa: S105 - the name of a header
KEY = "lg_key"
COMMAND_BYTES_MAX = 60 << 10

INGRESS = Principal(PrincipalId("ingress"), Role.SERVICE)
"""Who sets apart what nobody can be answered for."""


class TokenHolders(Protocol):
    """Who holds which token."""

    def principal(self, token: str) -> Principal | None:
        """Whose it is."""
        ...


@dataclass(frozen=True, slots=True)
class CommandReader:
    """Reads records of the commands' topic; `bound` speaks where a record bears no token."""

    registry: Registry
    tokens: TokenHolders
    bound: Principal | None = None

    def read(
        self, value: bytes | None, headers: Sequence[Header], place: IngressPlace
    ) -> Submission:
        """The command of a record. Raises `BadRecord` for what can never be one."""
        schema_id, body = unwire(value)
        if len(body) > COMMAND_BYTES_MAX:
            raise BadRecord(f"oversize: {len(body)} bytes, the most is {COMMAND_BYTES_MAX}")
        contract = self.registry.by_id.get(schema_id)
        if contract is None or contract.kind != "commands":
            raise BadRecord(f"unknown-schema: no command has the schema id {schema_id}")
        principal = self._principal(headers)
        try:
            key = header(headers, KEY).decode()
        except UnicodeDecodeError as error:
            raise BadRecord(f"the header {KEY} is not UTF-8") from error
        return Submission(principal, key, contract.type, body, ingress=place)

    def _principal(self, headers: Sequence[Header]) -> Principal:
        token = next((value for name, value in headers if name == TOKEN), None)
        if token is None:
            if self.bound is None:
                raise BadRecord(f"forbidden: the header {TOKEN} is missing")
            return self.bound
        found = self.tokens.principal(token.decode(errors="replace"))
        if found is None:
            raise BadRecord("forbidden: no principal has this token")
        return found


def unreadable(value: bytes | None, place: IngressPlace, why: str) -> Submission:
    """What is asked of the ledger for a record that is no command: to record that it was set apart."""
    digest = sha256(value or b"").digest()
    key = f"{place.topic}/{place.partition}/{place.offset}"
    return Submission(INGRESS, key, UNREADABLE, digest + why.encode(), ingress=place)

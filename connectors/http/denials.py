"""Readers who were turned away: each is told that there is nothing, and it is noted in the log."""

import time
from collections import Counter

from fastapi import Request
from fastapi.responses import Response

from connectors.http import metrics
from connectors.http.commanding import Commands
from connectors.http.problems import problem
from connectors.http.reading import ReadModels
from domain.commands import ReportDenial
from domain.ids import PrincipalId, ReservationId
from domain.principal import Principal, Role

PRINCIPAL = Principal(PrincipalId("http"), Role.SERVICE)
PER_HOUR_MAX = 100
"""Denials of one principal that are noted in an hour; all are counted."""
HOUR_SECONDS = 3600


class Denials:
    """Answers those for whom there is nothing, and notes who reached for what, once an hour each."""

    def __init__(self, models: ReadModels, commands: Commands) -> None:
        """By commands of this face's own."""
        self._models = models
        self._commands = commands
        self._hour = 0
        self._noted: Counter[PrincipalId] = Counter()

    async def nothing(self, request: Request, verb: str, kind: str, subject: str) -> Response:
        """There is nothing, or nothing of the reader's own: one answer for both."""
        if await self._models.is_anothers(request.state.principal, subject):
            await self._note(request, verb, ReservationId(subject))
        return problem(404, "not-found", f"there is no {kind} {subject}", reason="not-found")

    async def _note(self, request: Request, verb: str, reservation_id: ReservationId) -> None:
        metrics.DENIED.inc()
        who: Principal = request.state.principal
        hour = int(time.time()) // HOUR_SECONDS
        if hour != self._hour:
            self._hour = hour
            self._noted.clear()
        if self._noted[who.id] >= PER_HOUR_MAX:
            return
        self._noted[who.id] += 1
        command = ReportDenial(who.id, who.tenant_id, verb, reservation_id)
        key = f"{who.id}/{verb}/{reservation_id}/{hour}"
        await self._commands.submit(
            self._commands.submission(request, key, command, principal=PRINCIPAL)
        )

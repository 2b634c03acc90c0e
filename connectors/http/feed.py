"""Reservations as iCalendar (RFC 5545), for the calendars that people have."""

import time
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response
from icalendar import Calendar, Event

from connectors.http.allowed import add_reads, told_of
from connectors.http.denials import Denials
from connectors.http.problems import problem
from connectors.http.query import instant, number
from connectors.http.reading import ReadModels, Rows
from connectors.http.reads import caught_up
from domain.states import ReservationState
from domain.timespan import MICROSECONDS
from schemas.json_form import BadField

FEED = {
    "/v1/calendar.ics": "calendar_feed",
    "/v1/reservations/{reservation_id}/calendar.ics": "reservation_feed",
}
"""Which path is which verb of READ_VERBS; each is a method of the same name below."""

FEED_EVENTS_MAX = 1_000
"""More than a calendar shows; a longer feed is refused, never cut."""

DAY = 86_400 * MICROSECONDS
FEED_PAST_DAYS = 30
FEED_AHEAD_DAYS = 366
MEDIA_TYPE = "text/calendar; charset=utf-8"

_STATUS = {
    ReservationState.QUEUED: "TENTATIVE",
    ReservationState.HELD: "TENTATIVE",
    ReservationState.REFUSED: "CANCELLED",
    ReservationState.LAPSED: "CANCELLED",
    ReservationState.CANCELLED: "CANCELLED",
    ReservationState.EXPIRED: "CANCELLED",
}
"""STATUS of RFC 5545, section 3.8.1.11; whatever is not named here is CONFIRMED."""


def add(app: FastAPI, models: ReadModels, denials: Denials) -> None:
    """Register both."""
    reads = _Feed(models, denials)
    add_reads(app, FEED, reads)


def icalendar(rows: Rows) -> bytes:
    """Reservations as one calendar, in the order given; the same rows give the same bytes.

    A row is one of `ReadModels.feed`; its instants are microseconds since 1970 UTC.
    """
    calendar = Calendar()
    calendar.add("prodid", "-//gpuledger//reservations//EN")
    calendar.add("version", "2.0")
    calendar.add("x-wr-calname", "GPU reservations")
    for row in rows:
        calendar.add_component(_event(row))
    text: bytes = calendar.to_ical()
    return text


def _event(row: dict[str, Any]) -> Event:
    """One reservation: its id is the event's for ever, so that a later reading replaces it."""
    event = Event()
    event.add("uid", f"{row['reservation_id']}@gpuledger")
    event.add("sequence", row["intent_version"])
    changed = _utc(row["recorded_at"])
    event.add("dtstamp", changed)
    event.add("last-modified", changed)
    event.add("dtstart", _utc(row["start"]))
    if row["end"] > row["start"]:
        event.add("dtend", _utc(row["end"]))
    event.add("summary", f"{_amount(row)} in {row['pool_id']}, {row['state']}")
    lines = [f"reservation {row['reservation_id']}", f"tenant {row['tenant_id']}", row["klass"]]
    if row["short_milli"]:
        lines.append(f"short by {row['short_milli'] / 1000:g} GPUs")
    if row["open_ended"]:
        lines.append("until released: the end is that of its present term")
    event.add("description", "\n".join(lines))
    event.add("location", row["pool_id"])
    event.add("status", _STATUS.get(ReservationState(row["state"]), "CONFIRMED"))
    return event


def _amount(row: dict[str, Any]) -> str:
    gpus = row["milli"] / 1000
    return "1 GPU" if gpus == 1 else f"{gpus:g} GPUs"


def _utc(microseconds: int) -> datetime:
    """An instant as iCalendar has it: in UTC, of whole seconds."""
    return datetime.fromtimestamp(microseconds // MICROSECONDS, UTC)


class _Feed:
    def __init__(self, models: ReadModels, denials: Denials) -> None:
        self._models = models
        self._denials = denials

    async def calendar_feed(self, request: Request) -> Response:
        """The reservations between `from` and `to` (30 days back, 366 ahead) as iCalendar; `tenant_id` narrows."""
        await self._caught_up(request)
        now = time.time_ns() // 1000
        start = instant(request, "from", now - FEED_PAST_DAYS * DAY)
        end = instant(request, "to", now + FEED_AHEAD_DAYS * DAY)
        if end <= start:
            raise BadField("/to", "must be after from")
        tenant_id = request.query_params.get("tenant_id", "")
        reader = request.state.principal
        rows = await self._models.feed(reader, start, end, tenant_id, FEED_EVENTS_MAX + 1)
        if len(rows) > FEED_EVENTS_MAX:
            detail = f"a feed has at most {FEED_EVENTS_MAX} reservations: narrow from, to or tenant"
            return problem(422, "limit", detail, reason="limit")
        return Response(icalendar(rows), media_type=MEDIA_TYPE)

    async def reservation_feed(self, request: Request) -> Response:
        """One reservation as iCalendar."""
        await self._caught_up(request)
        subject = request.path_params["reservation_id"]
        rows = await self._models.feed_of(request.state.principal, subject)
        if not rows:
            return await self._denials.nothing(request, "reservation_feed", "reservation", subject)
        return Response(icalendar(rows), media_type=MEDIA_TYPE)

    async def _caught_up(self, request: Request) -> None:
        """Where a reservation stands, and until when it held units, are read from one position on."""
        seq = number(request, "min_seq", 0)
        for projection in ("reservations", "calendar"):
            await caught_up(self._models, projection, seq)


TOLD = told_of(FEED, _Feed)
"""What each read tells, in a line, by its verb."""

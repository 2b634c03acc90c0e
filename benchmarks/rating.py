"""Rating: events folded into consumption, and lines of usage into charges, per second."""

import time
from collections import deque
from collections.abc import Sequence

from benchmarks.charges import lines_of, terms
from benchmarks.figures import Figure, main
from connectors.memory.journal import MemoryJournal
from connectors.postgres.recorded import recorded
from domain.reservation import Reservation
from projections.consumption import Consumption
from projections.rating import rate
from schemas.registry import registry
from tests import builders as b
from tests.billing import BilledWorld

BOOKINGS = 1_500
HOURS = 744
TENANT_HOURS = 248


def _world() -> BilledWorld:
    """Bookings that were handed over and freed, one after the other on many nodes."""
    world = BilledWorld(nodes=8)
    running: deque[tuple[float, Reservation]] = deque()
    for number in range(BOOKINGS):
        start = 1 + number * 0.25
        while running and running[0][0] <= start:
            end, ended = running.popleft()
            world.freed(ended, b.at(end))
        booked = world.booked(b.book(gpus=1 + number % 8, start=start, end=start + 1.5))
        world.applied(booked, b.at(start))
        running.append((start + 1.5, booked))
    return world


def measure() -> Sequence[Figure]:
    """All figures of rating."""
    store = _world().store
    stored = list(MemoryJournal(store).read_all(0))
    begun = time.perf_counter()
    events = [recorded(event, registry()) for event in stored]
    decoded = len(events) / (time.perf_counter() - begun)
    consumption = Consumption()
    begun = time.perf_counter()
    for event in events:
        consumption.apply(event)
    lines = consumption.lines(consumption.last)
    rate(lines, consumption.terms)
    seconds = time.perf_counter() - begun
    usage = list(lines_of(0, TENANT_HOURS))
    book = terms()
    begun = time.perf_counter()
    rate(usage, book)
    rated = len(usage) / (time.perf_counter() - begun)
    return [
        Figure("rating.events", len(events) / seconds, "events/s", 50_000, decoded),
        Figure("rating.lines", rated, "lines/s"),
    ]


if __name__ == "__main__":
    main(measure, __doc__ or "")

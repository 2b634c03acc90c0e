"""A log as a picture: who held what and when, as it went, and what was out meanwhile."""

from collections.abc import Iterator, Mapping

from domain.facts.fact import OfNode
from domain.record import Recorded
from domain.states import BOOKABLE, SERVING, NodeState
from domain.timespan import Instant
from domain.units import MILLI_PER_GPU
from projections.calendar import Calendar, CalendarRow
from projections.fleet import Fleet, NodeRow
from projections.gantt import Bar, Down, Gantt, Line, Mark, clock_ticks
from projections.wording import worded

WHOLE = -1
"""Stands for a whole node where a GPU's number is meant."""
_UNSEEN = {state.value for state in (SERVING - {NodeState.SUSPECTED}) | BOOKABLE} - {"maintenance"}
"""Nodes in these states are drawn as serving."""

Outage = tuple[Instant, str]
"""Since when, and why."""


class Chronicle:
    """Folds a log, and draws what came of it."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._calendar, self._fleet = Calendar(), Fleet()
        self._out: dict[tuple[str, int], Outage] = {}
        self._outages: list[Down] = []
        self._marks: dict[Instant, list[str]] = {}

    def apply(self, recorded: Recorded) -> None:
        """Fold one fact."""
        self._calendar.apply(recorded)
        self._fleet.apply(recorded)
        if isinstance(recorded.fact, OfNode):
            self._follow(recorded.fact.node_id, recorded.occurred_at)
        self._marks.setdefault(recorded.occurred_at, []).append(worded(recorded.fact))

    def _follow(self, node_id: str, at: Instant) -> None:
        """Begin and end the outages of a node and of its GPUs."""
        row = self._fleet.nodes.rows[node_id,]
        assert isinstance(row, NodeRow)
        why: dict[int, str] = {}
        if row.state not in _UNSEEN:
            why[WHOLE] = f"{row.state} ({row.cause})" if row.cause else row.state
        for slot in filter(None, row.failed_slots.split(",")):
            why[int(slot)] = f"GPU {slot} failed"
        for slot in (WHOLE, *range(row.gpus)):
            begun = self._out.get((node_id, slot))
            if begun is not None and begun[1] != why.get(slot):
                self._outages.append(_down(row, slot, begun, at))
                del self._out[node_id, slot]
            if slot in why:
                self._out.setdefault((node_id, slot), (at, why[slot]))

    def gantt(self, title: str, start: Instant, now: Instant, names: Mapping[str, str]) -> Gantt:
        """What was held from a start to now and, of what is held still, to its end.

        `names` has names for ids of reservations.
        """
        bars = tuple(self._bars(names))
        end = Instant(max([now, start + 1, *(bar.end for bar in bars)]))
        marks = [Mark(at, "\n".join(told)) for at, told in self._marks.items()]
        return Gantt(
            title,
            start,
            end,
            clock_ticks(start, end),
            tuple(self._lines()),
            bars,
            tuple(self._downs(end)),
            now=now,
            notes=(f"{sum(map(len, self._marks.values()))} events; point at a mark to read them",),
            marks=tuple(marks),
        )

    def _lines(self) -> Iterator[Line]:
        for row in self._fleet.nodes.rows.values():
            assert isinstance(row, NodeRow)
            yield Line(row.node_id, row.gpus, row.levels.rpartition("=")[2])

    def _bars(self, names: Mapping[str, str]) -> Iterator[Bar]:
        for row in self._calendar.table.rows.values():
            assert isinstance(row, CalendarRow)
            place = (row.node_id, row.first_milli, row.width_milli, row.start, row.end)
            name = names.get(row.reservation_id, row.reservation_id)
            yield Bar(*place, row.tenant_id, name, f"{row.klass} {row.state}")

    def _downs(self, end: Instant) -> Iterator[Down]:
        """What was out, and what is out still, to the end of the picture."""
        yield from self._outages
        for (node_id, slot), begun in self._out.items():
            row = self._fleet.nodes.rows[node_id,]
            assert isinstance(row, NodeRow)
            yield _down(row, slot, begun, end)


def _down(row: NodeRow, slot: int, begun: Outage, end: Instant) -> Down:
    first, width = (0, row.gpus) if slot == WHOLE else (slot, 1)
    milli = (first * MILLI_PER_GPU, width * MILLI_PER_GPU)
    return Down(row.node_id, *milli, begun[0], end, begun[1])

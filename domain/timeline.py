"""How much of something is committed at each instant, and the most of it over a span."""

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field

from domain.timespan import MICROSECONDS

DAY = 86_400 * MICROSECONDS


@dataclass(slots=True)
class _Day:
    """The steps of one day: their instants and sizes, what they sum to, and their highest sum."""

    instants: list[int] = field(default_factory=list)
    steps: dict[int, int] = field(default_factory=dict)
    total: int = 0
    _peak: int | None = 0

    @property
    def peak(self) -> int:
        """The highest sum of the steps from midnight on; nothing at midnight itself."""
        if self._peak is None:
            level = self._peak = 0
            for instant in self.instants:
                level += self.steps[instant]
                self._peak = max(self._peak, level)
        return self._peak

    def step(self, at: int, by: int) -> None:
        """Change the amount from an instant on."""
        size = self.steps.get(at)
        if size is None:
            insort(self.instants, at)
            self.steps[at] = by
        elif size + by:
            self.steps[at] = size + by
        else:
            del self.steps[at]
            del self.instants[bisect_left(self.instants, at)]
        self.total += by
        self._peak = None


@dataclass(slots=True)
class Timeline:
    """A step function of time, kept by days so that a change touches two of them."""

    days: dict[int, _Day] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)

    def add(self, start: int, end: int, amount: int) -> None:
        """Commit an amount over `[start, end)`; a negative one takes it away again."""
        if start >= end:
            return
        self._step(start, amount)
        self._step(end, -amount)

    def peak(self, start: int, end: int) -> tuple[int, int]:
        """The most that is committed in `[start, end)`, and the first instant when it is."""
        first = bisect_left(self.order, start // DAY)
        level = sum(self.days[day].total for day in self.order[:first])
        best, best_at, settled = level, start, False
        for day in self.order[first:]:
            steps = self.days[day]
            if day * DAY >= end:
                break
            if settled and (day + 1) * DAY <= end and level + steps.peak <= best:
                level += steps.total
                continue
            for instant in steps.instants:
                if instant >= end:
                    return best, best_at
                if instant <= start:
                    level += steps.steps[instant]
                    best = level
                    continue
                level += steps.steps[instant]
                if level > best:
                    best, best_at = level, instant
            settled = True
        return best, best_at

    def at(self, instant: int) -> int:
        """What is committed at one instant."""
        return self.peak(instant, instant + 1)[0]

    def changes(self, start: int, end: int) -> list[int]:
        """The instants inside `(start, end)` at which the amount changes."""
        found: list[int] = []
        for day in self.order[bisect_left(self.order, start // DAY) :]:
            instants = self.days[day].instants
            found += instants[bisect_right(instants, start) : bisect_left(instants, end)]
            if day * DAY >= end:
                break
        return found

    def _step(self, at: int, by: int) -> None:
        day = at // DAY
        steps = self.days.get(day)
        if steps is None:
            steps = self.days[day] = _Day()
            insort(self.order, day)
        steps.step(at, by)
        if not steps.instants:
            del self.days[day]
            del self.order[bisect_left(self.order, day)]

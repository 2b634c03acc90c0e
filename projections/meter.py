"""How much of a pool is in which state, integrated over time, hour by hour, in integers.

Widths are thousandths of a GPU, instants whole milliseconds, so every amount is a whole number
of GPU-microseconds.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

HOUR_MS = 3_600_000

Account = tuple[str, ...]
"""Pool, tenant (empty for nobody's), state, and whatever else tells two accounts apart."""

Hourly = tuple[Any, ...]
"""Pool, the first millisecond of an hour or of a part of it, and the rest of the account."""


@dataclass(slots=True)
class _Rate:
    width_milli: int = 0
    since_ms: int = 0


@dataclass(slots=True)
class Meter:
    """For each account its present width, and what it has come to in each hour."""

    hours: dict[Hourly, int] = field(default_factory=dict)
    """GPU-microseconds by pool, hour (ms since 1970), tenant, state and so on."""
    touched: set[Hourly] = field(default_factory=set)
    cuts_ms: tuple[int, ...] = ()
    """Instants inside hours at which amounts are cut besides, in order."""
    _rates: dict[Account, _Rate] = field(default_factory=dict)

    def change(self, account: Account, at_ms: int, by_milli: int) -> None:
        """From an instant on, so much more (or less) is in this account."""
        rate = self._rates.get(account)
        if rate is None:
            rate = self._rates[account] = _Rate(0, at_ms)
        self._accrue(account, rate, at_ms)
        rate.width_milli += by_milli
        assert rate.width_milli >= 0, (account, rate.width_milli)

    def settle(self, at_ms: int) -> None:
        """Bring every account up to an instant."""
        for account, rate in self._rates.items():
            self._accrue(account, rate, at_ms)

    def _accrue(self, account: Account, rate: _Rate, at_ms: int) -> None:
        since = rate.since_ms
        if at_ms <= since:
            return
        rate.since_ms = at_ms
        if rate.width_milli:
            self.add(account, since, at_ms, rate.width_milli)

    def add(self, account: tuple[Any, ...], since: int, at_ms: int, width_milli: int) -> None:
        """Count a width from one millisecond to another, by the hour."""
        while since < at_ms:
            hour = since - since % HOUR_MS
            until = min(at_ms, hour + HOUR_MS)
            if self.cuts_ms:
                hour, until = self._part(since, hour, until)
            key = (account[0], hour, *account[1:])
            self.hours[key] = self.hours.get(key, 0) + width_milli * (until - since)
            self.touched.add(key)
            since = until

    def _part(self, since: int, hour: int, until: int) -> tuple[int, int]:
        """The part of an hour between two cuts."""
        place = bisect_right(self.cuts_ms, since)
        if place:
            hour = max(hour, self.cuts_ms[place - 1])
        if place < len(self.cuts_ms):
            until = min(until, self.cuts_ms[place])
        return hour, until

    def width(self, pool: str) -> int:
        """All of a pool, over all states, at present."""
        return sum(rate.width_milli for account, rate in self._rates.items() if account[0] == pool)

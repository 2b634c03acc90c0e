"""What a run of a trace came to, in numbers that anyone can check."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class Report:
    """Counts, amounts in GPU-microseconds, hashes, and the three checks."""

    requests: int = 0
    accepted: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    queued: int = 0
    skipped: int = 0
    malformed: int = 0
    nodes_kept: int = 0
    mean_demand: float = 0.0
    peak_demand: float = 0.0
    gpu_microseconds: dict[str, int] = field(default_factory=dict)
    charges: dict[str, Any] = field(default_factory=dict)
    events: int = 0
    commands_per_s: float = 0.0
    wall_s: float = 0.0
    peak_rss_mib: float = 0.0
    state_hash: str = ""
    root_hash: str = ""
    checks: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] = field(default_factory=dict)
    """What a plan of all of it comes to beside the bookings, where one was asked for."""

    def as_json(self) -> dict[str, Any]:
        """As it is written to a file."""
        return asdict(self)

    def rows(self) -> list[dict[str, str]]:
        """As lines of a summary."""
        found: list[dict[str, str]] = []
        for name, value in self.as_json().items():
            if isinstance(value, dict):
                found += [{"what": f"{name} {key}", "value": _told(v)} for key, v in value.items()]
            else:
                found.append({"what": name, "value": _told(value)})
        return found


def _told(value: object) -> str:
    if isinstance(value, (bool, str)):
        return str(value)
    if isinstance(value, list):
        return "; ".join(map(str, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_told(amount)}" for name, amount in value.items())
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"

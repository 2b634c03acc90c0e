"""What a verification says: what it checked, what is wrong, and what it cannot exclude."""

from dataclasses import dataclass, field

FAULTS_MAX = 20
"""So many faults are named; where there are more, the first ones are what matters."""


@dataclass(slots=True)
class Verdict:
    """What a verification found."""

    events: int = 0
    root: str = ""
    checked: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    not_excluded: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    def fault(self, words: str) -> None:
        """Note something that is wrong."""
        if len(self.faults) < FAULTS_MAX:
            self.faults.append(words)


@dataclass(frozen=True, slots=True)
class KnownRoot:
    """A root that somebody kept: of the tree over the first so many events."""

    size: int
    root: bytes

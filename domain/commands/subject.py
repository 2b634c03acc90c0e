"""Commands on people and services: the subjects of personal data."""

from dataclasses import dataclass

from domain.ids import PrincipalId


@dataclass(frozen=True, slots=True)
class EraseSubject:
    """Forget a principal's name and the words that it wrote; what it did stays."""

    subject_id: PrincipalId
    reason: str

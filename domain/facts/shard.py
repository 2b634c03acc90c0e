"""Facts of a shard itself: its writer, its clock, and who was turned away."""

from dataclasses import dataclass

from domain.ids import PrincipalId, TenantId


class OfShard:
    """A fact of a shard."""

    __slots__ = ()
    shard: int

    @property
    def stream(self) -> str:
        """The shard's stream."""
        return f"shard/{self.shard}"


@dataclass(frozen=True, slots=True)
class AccessDenied(OfShard):
    """A principal reached for what is not its own; it was told that there is nothing."""

    shard: int
    principal_id: PrincipalId
    tenant_id: TenantId | None
    verb: str
    subject: str


@dataclass(frozen=True, slots=True)
class SubjectErased(OfShard):
    """A principal's name and the words that it wrote until now are forgotten."""

    shard: int
    subject_id: PrincipalId
    reason: str


@dataclass(frozen=True, slots=True)
class LeaseTaken(OfShard):
    """A writer took the shard under a new epoch; older writers are fenced."""

    shard: int
    epoch: int
    holder: str


@dataclass(frozen=True, slots=True)
class ClockClamped(OfShard):
    """The writer's clock went back; recorded time went on."""

    shard: int
    back_microseconds: int


@dataclass(frozen=True, slots=True)
class ClockConfirmed(OfShard):
    """An operator confirmed a clock that had jumped ahead; decisions go on."""

    shard: int
    ahead_microseconds: int

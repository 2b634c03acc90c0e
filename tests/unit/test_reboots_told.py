"""A reboot that somebody tells of: hardware is given anew if it was one, and taken back if it was none."""

from connectors.postgres.recorded import recorded
from connectors.reconciler.reconciler import Reconciler
from connectors.simulated.fleet import SimulatedFleet
from domain import commands as c
from domain.commands.node import Health
from domain.facts.hardware import UnitsApplied, UnitsFreed
from domain.ids import NodeId
from domain.timespan import Instant
from schemas.registry import registry
from tests import builders as b
from tests.world import World

N1 = NodeId("n1")


class Service:
    """A ledger in memory and hardware that is kept in step with it."""

    def __init__(self) -> None:
        self.world = World(nodes=1)
        self.reconciler = Reconciler(SimulatedFleet())
        self.heard = 0

    def hear(self, at: Instant) -> None:
        """Let time go on, hardware follow, and its reports come in."""
        self.world.advance(at)
        for _ in range(3):
            events = self.world.store.events[self.heard :]
            self.heard += len(events)
            facts = [recorded(event, registry()) for event in events]
            for report in self.reconciler.step(facts, at):
                self.world.accept(report, principal=b.SERVICE, at=at)

    def told(self, kind: type) -> int:
        """How many facts of a kind there are."""
        facts = [recorded(event, registry()).fact for event in self.world.store.events]
        return sum(isinstance(fact, kind) for fact in facts)


def test_units_are_taken_back_though_their_node_was_said_to_boot_anew() -> None:
    service = Service()
    service.world.accept(b.book("a", gpus=8, start=0, end=1))
    service.hear(b.at(0.1))
    service.world.accept(c.ReportHealth(b.POOL, Health.REBOOTING, "told", N1), at=b.at(0.2))
    service.hear(b.at(1))
    assert (service.told(UnitsApplied), service.told(UnitsFreed)) == (1, 1)
    service.world.accept(c.ReportHealth(b.POOL, Health.RECOVERED, "back", N1), at=b.at(1.1))
    service.world.accept(b.book("b", gpus=8, start=2, end=3))
    service.hear(b.at(2))
    assert service.told(UnitsApplied) == 2, "the next holder meets nobody"
    service.world.check()


def test_a_holder_whose_node_is_back_in_its_window_has_its_units_anew() -> None:
    service = Service()
    service.world.accept(b.book("a", gpus=8, start=0, end=1))
    service.hear(b.at(0.1))
    service.world.accept(c.ReportHealth(b.POOL, Health.REBOOTING, "told", N1), at=b.at(0.2))
    service.hear(b.at(0.21))
    service.world.accept(c.ReportHealth(b.POOL, Health.RECOVERED, "back", N1), at=b.at(0.22))
    service.hear(b.at(0.3))
    assert service.told(UnitsApplied) == 2
    service.hear(b.at(1.1))
    assert service.told(UnitsFreed) == 1
    service.world.check()

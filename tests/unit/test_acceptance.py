"""Acceptance: which checks, when, and what comes of them."""

from typing import Any

import pytest

from connectors.postgres.recorded import recorded
from connectors.reconciler.reconciler import Reconciler
from connectors.simulated.fleet import SimulatedFleet
from domain import commands as c
from domain.commands.node import Health
from domain.facts.node import AcceptanceStarted, CheckReport
from domain.ids import NodeId
from domain.states import NodeState
from schemas.registry import registry
from tests import builders as b
from tests.world import World

N1 = NodeId("n1")
ECC = CheckReport("ecc", passed=True, detail="")


def joined(**policy: Any) -> World:
    world = World(nodes=0)
    world.accept(b.open_pool(acceptance=True, acceptance_checks=("ecc",), **policy))
    world.accept(b.join("n1"))
    return world


def state(world: World) -> NodeState:
    return world.sequencer.ledger.nodes[N1].state


def triggers(world: World) -> list[str]:
    facts = [recorded(e, registry()).fact for e in world.store.events]
    return [fact.trigger for fact in facts if isinstance(fact, AcceptanceStarted)]


def test_each_way_into_the_tests_says_why() -> None:
    world = joined()
    world.accept(c.ReportAcceptance(N1, (ECC,)))
    world.accept(c.ReportHealth(b.POOL, Health.FAILED, "xid79", N1))
    world.accept(c.ReportHealth(b.POOL, Health.RECOVERED, "repaired", N1))
    world.accept(c.ReportAcceptance(N1, (ECC,)))
    world.accept(c.ReportHealth(b.POOL, Health.REBOOTING, "panic", N1))
    world.accept(c.ReportHealth(b.POOL, Health.RECOVERED, "back", N1))
    world.accept(c.ReportAcceptance(N1, (ECC,)))
    world.accept(c.PlanMaintenance(b.POOL, b.at(1), b.at(2), N1))
    world.advance(b.at(2))
    world.accept(c.ReportAcceptance(N1, (ECC,)))
    world.accept(c.TestNode(N1))
    assert triggers(world) == ["join", "repair", "reboot", "maintenance", "operator"]
    world.check()


@pytest.mark.parametrize("before", [c.CordonNode(N1), c.DrainNode(N1)])
def test_an_operator_may_test_what_nobody_holds(before: c.Command) -> None:
    world = joined()
    world.accept(c.ReportAcceptance(N1, (ECC,)))
    world.accept(before)
    world.accept(c.TestNode(N1))
    assert state(world) is NodeState.TESTING
    world.accept(c.ReportAcceptance(N1, (ECC,)))
    assert state(world) is NodeState.READY
    world.check()


def test_a_report_without_a_check_of_the_suite_is_refused_and_changes_nothing() -> None:
    world = joined()
    assert world.refused(c.ReportAcceptance(N1, ())) == "malformed"
    assert state(world) is NodeState.TESTING
    world.check()


def test_a_suite_without_checks_or_with_too_many_is_refused() -> None:
    world = World(nodes=0)
    none = b.open_pool(acceptance=True, acceptance_checks=())
    many = b.open_pool(acceptance_checks=tuple(f"check-{n}" for n in range(33)))
    assert (world.refused(none), world.refused(many)) == ("malformed", "limit")


def test_a_reconciler_that_starts_anew_asks_again_for_tests_that_it_did_not_hear_of() -> None:
    world = joined()
    fleet = SimulatedFleet(failing={N1: ("ecc",)})
    fresh = Reconciler(fleet)
    fresh.learn(recorded(e, registry()) for e in world.store.events)
    (report,) = fresh.step([], b.at(1))
    assert isinstance(report, c.ReportAcceptance)
    assert fresh.step([], b.at(2)) == []
    world.accept(report, principal=b.SERVICE, at=b.at(1))
    assert state(world) is NodeState.FAILED
    world.check()

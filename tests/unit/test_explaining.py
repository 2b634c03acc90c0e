"""Why here, why not, who is in the way, and the nearest yes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any

from connectors.http.explained import explained
from domain import commands as c
from domain.commands.node import Health
from domain.facts.request import CommandRefused
from domain.ids import NodeId
from domain.refusals import Asked
from domain.reservation import Reservation
from domain.sizes import ReservationClass
from domain.submission import Outcome, OutcomeKind, Submission
from schemas.image import image_of
from schemas.registry import registry
from solvers.explaining import Explanation, explain, want_of
from solvers.trial import Copy, Want
from tests import builders as b
from tests.world import World


@contextmanager
def unharmed(world: World) -> Iterator[Copy]:
    """The world's own ledger as a copy: what is tried on it must leave no trace."""
    ledger = world.sequencer.ledger
    before = image_of(ledger)
    yield Copy(ledger, world.sequencer.placer, world.seq, world.now)
    assert image_of(ledger) == before
    assert not ledger.changes


def asked_of(outcome: Outcome) -> Asked:
    """What a refused request asked for, as its fact has kept it."""
    (stored,) = (fact for fact in outcome.facts if fact.type.startswith("CommandRefused"))
    fact = registry().decode(stored.type, stored.body)
    assert isinstance(fact, CommandRefused)
    assert fact.asked is not None
    return fact.asked


def why_not(world: World, command: c.RequestReservation) -> Explanation:
    """The explanation of a request that is refused, or waits."""
    outcome = world.send(command)
    asked = asked_of(outcome) if outcome.refusal else queued(world)
    with unharmed(world) as copy:
        want = want_of(copy, asked)
        assert want is not None
        return explain(copy, want)


def queued(world: World) -> Reservation:
    """The one that waits."""
    ledger = world.sequencer.ledger
    (name,) = ledger.pools[b.POOL].queued
    return ledger.reservations[name]


def request(want: Want) -> c.RequestReservation:
    """The command that asks for a want."""
    span = (want.span.start, want.span.end)
    return c.RequestReservation(
        want.tenant_id, want.pool.id, want.size, *span, klass=want.klass, shape=want.shape
    )


def rules(found: Explanation) -> list[str]:
    return [limit.rule for limit in found.limits]


def racks() -> World:
    """Four nodes in two racks, two tenants with quota."""
    world = World(nodes=0)
    world.accept(b.open_pool(borrowing=True))
    for name, rack in (("n1", "r1"), ("n2", "r1"), ("n3", "r2"), ("n4", "r2")):
        world.accept(b.join(name, rack=rack))
    for name in ("a", "b"):
        world.accept(b.register(name))
        world.accept(b.grant(name))
    return world


def test_who_is_in_the_way_is_named_and_their_leaving_would_be_enough() -> None:
    world = World(nodes=1)
    held = world.booked(b.book("a", gpus=6))
    world.booked(b.book("a", gpus=2, start=5, end=6))
    found = why_not(world, b.book("b", gpus=4))
    assert rules(found) == ["capacity"]
    assert [each.holder_id for each in found.in_the_way] == [held.id]
    assert found.in_the_way[0].milli == 2000
    assert found.is_enough


def test_the_cheapest_in_the_way_are_named_not_all() -> None:
    world = World(nodes=2)
    world.booked(b.book("a", gpus=8))
    light = world.booked(b.book("a", gpus=5))
    found = why_not(world, b.book("b", gpus=4))
    assert {each.holder_id for each in found.in_the_way} == {light.id}
    assert found.verdicts == {"held": 2}


def test_every_yes_that_is_offered_is_one() -> None:
    world = World(nodes=2)
    world.booked(b.book("a", nodes=1, end=4))
    world.booked(b.book("a", gpus=5, end=3))
    found = why_not(world, b.book("b", nodes=2))
    kinds = [each.change for each in found.nearest]
    assert kinds == ["later"]
    found = why_not(world, b.book("b", gpus=6))
    assert [each.change for each in found.nearest] == ["later", "fewer"]
    assert [each.want.size.gpus for each in found.nearest] == [6, 3]
    for each in found.nearest:
        world.accept(request(each.want))


def test_a_quota_that_is_short_is_named_with_its_owner_and_another_class_offered() -> None:
    world = World(nodes=0)
    world.accept(b.open_pool(borrowing=True))
    world.accept(b.join("n1"))
    world.accept(b.register("org"))
    world.accept(b.grant("org", gpus=4, borrow=4))
    world.accept(b.register("team", parent="org"))
    world.accept(b.grant("team", gpus=8))
    found = why_not(world, b.book("team", gpus=6))
    (limit,) = found.limits
    assert (limit.rule, limit.alone, limit.facts["tenant_id"]) == ("quota", True, "org")
    assert found.in_the_way == ()
    changes = {each.change: each.want for each in found.nearest}
    assert changes["fewer"].size.gpus == 4
    assert changes["other-class"].klass is ReservationClass.BORROWED
    world.accept(request(changes["other-class"]))


def test_topology_alone_is_told_where_nodes_are_free_but_apart() -> None:
    world = racks()
    for name in ("n1", "n3"):
        world.accept(c.CordonNode(NodeId(name), "noise"))
    found = why_not(world, b.book("b", nodes=2, same_level="rack"))
    assert [(limit.rule, limit.alone) for limit in found.limits] == [
        ("topology", True),
        ("out-of-service", True),
    ]
    assert found.verdicts == {"cordoned": 2, "fits": 2}
    assert "other-topology" in [each.change for each in found.nearest]


def test_maintenance_that_stands_in_the_way_is_told_with_its_end() -> None:
    world = World(nodes=1)
    world.accept(c.PlanMaintenance(b.POOL, b.at(1), b.at(3), NodeId("n1")))
    found = why_not(world, b.book("b", gpus=4))
    maintenance = next(limit for limit in found.limits if limit.rule == "maintenance")
    assert maintenance.alone
    assert maintenance.facts["end"] == str(b.at(3))
    assert [each.klass for each in found.in_the_way] == ["maintenance"]
    assert found.is_enough


def test_another_model_is_told_as_the_limit_and_offered() -> None:
    world = World(nodes=1)
    world.accept(b.join("old", model="A100"))
    world.booked(b.book("a", gpus=8, models=("A100",)))
    found = why_not(world, b.book("b", gpus=4, models=("A100",)))
    assert "model" in rules(found)
    offered = next(each for each in found.nearest if each.change == "other-model")
    assert offered.want.shape.models == ("H100",)
    assert found.verdicts == {"another model": 1, "held": 1}


def test_a_booking_is_explained_by_where_it_would_be_put_again() -> None:
    world = World(nodes=3)
    world.booked(b.book("a", gpus=5))
    mine = world.booked(b.book("b", gpus=2))
    with unharmed(world) as copy:
        want = want_of(copy, mine)
        assert want is not None
        found = explain(copy, want, mine)
    assert found.fits
    assert found.here == found.again == ("n1",)
    assert found.verdicts == {"fits": 2, "here": 1}
    assert {seen.node_id: seen.free_gpus for seen in found.nodes} == {"n1": 3, "n2": 8, "n3": 8}


def test_a_tenant_is_told_nothing_of_others() -> None:
    world = World(nodes=2)
    world.booked(b.book("a", gpus=8))
    mine = world.booked(b.book("b", gpus=7))
    found = why_not(world, b.book("b", gpus=8))
    told = explained(found, b.tenant("b"))
    assert [each["holder_id"] for each in told["in_the_way"]] == [mine.id]
    text = json.dumps(explained(why_not(world, b.book("b", nodes=2)), b.tenant("b")))
    others = [r.id for r in world.sequencer.ledger.reservations.values() if r.tenant_id == "a"]
    assert not any(name in text for name in (*others, '"a"', "free_milli", "verdicts"))
    assert '"others_in_the_way": true' in text
    whole = explained(why_not(world, b.book("b", nodes=2)), b.OPERATOR)
    assert others[0] in json.dumps(whole)
    assert not whole["others_in_the_way"]


def test_explanations_of_many_refusals_hold_when_they_are_tried() -> None:
    for seed in range(25):
        dice = Random(seed)
        world = World(nodes=dice.randint(1, 4))
        world.accept(b.join("odd", gpus=4, model="A100", rack="r2"))
        refused = 0
        for _ in range(30):
            start = dice.randint(1, 6)
            size = dice.choice([{"gpus": dice.randint(1, 8)}, {"nodes": dice.randint(1, 2)}])
            more: dict[str, Any] = dice.choice([{}, {"models": ("A100",)}, {"same_level": "rack"}])
            command = b.book(
                dice.choice("ab"), start=start, end=start + dice.randint(1, 4), **size, **more
            )
            outcome = world.send(command)
            if outcome.kind is not OutcomeKind.REFUSED:
                continue
            refused += 1
            with unharmed(world) as copy:
                want = want_of(copy, asked_of(outcome)) if _has_asked(outcome) else None
                found = explain(copy, want) if want else None
            if found is None or found.fits:
                continue
            assert found.limits
            assert found.is_enough or not found.in_the_way
            for each in found.nearest:
                dry = world.submission(request(each.want))
                trial = world.sequencer.submit([_dry(dry)])[0]
                assert trial.kind is OutcomeKind.ACCEPTED, (seed, each)
        assert refused


def _has_asked(outcome: Outcome) -> bool:
    assert outcome.refusal is not None
    return outcome.refusal.reason.code in {"quota", "capacity", "topology"}


def _dry(submission: Submission) -> Submission:
    return replace(submission, dry_run=True)


def test_a_failed_gpu_is_out_of_service() -> None:
    world = World(nodes=1)
    world.accept(
        c.ReportHealth(b.POOL, Health.FAILED, "xid79", NodeId("n1"), slots=(0,)),
        principal=b.SERVICE,
    )
    found = why_not(world, b.book("b", gpus=8))
    assert [(limit.rule, limit.alone) for limit in found.limits] == [
        ("capacity", True),
        ("out-of-service", True),
    ]

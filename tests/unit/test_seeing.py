"""Who sees which facts of an outcome."""

from typing import Any

from connectors.http.seeing import own_facts
from domain.commands import GiveBack, RequestReservation
from domain.facts.pool import PreemptionOrdered
from domain.facts.reservation import ReservationConfirmed, ReservationPreempted, ReservationStarted
from domain.ids import OrderId, PoolId, PrincipalId, ReservationId, TenantId
from domain.principal import Principal, Role
from domain.sizes import ReservationClass, Shape, Size
from domain.submission import OutcomeFact
from domain.timespan import Instant

RED, BLUE = TenantId("team-red"), TenantId("team-blue")
MINE, THEIRS = ReservationId("a" * 32), ReservationId("b" * 32)
TENANT = Principal(PrincipalId("p"), Role.TENANT, RED)
OPERATOR = Principal(PrincipalId("o"), Role.OPERATOR)
ASK = RequestReservation(RED, PoolId("main"), Size(8), None, duration_seconds=60)


def _stored(seq: int, fact: Any) -> tuple[OutcomeFact, Any]:
    told = OutcomeFact(seq, f"{type(fact).__name__}.v1", fact.stream, 1, Instant(0), b"")
    return told, fact


def _reclaim() -> list[tuple[OutcomeFact, Any]]:
    order = PreemptionOrdered(
        PoolId("main"), OrderId("o"), (THEIRS,), MINE, "reclaim", Instant(0), 8000, 8000, None
    )
    preempted = ReservationPreempted(THEIRS, OrderId("o"), Instant(1), "reclaim")
    booked = ReservationConfirmed(
        MINE,
        RED,
        PoolId("main"),
        ReservationClass.GUARANTEED,
        Size(8),
        Shape(),
        8000,
        Instant(0),
        Instant(60_000_000),
        (),
        {},
    )
    facts = [order, preempted, booked, ReservationStarted(MINE)]
    return [_stored(seq, fact) for seq, fact in enumerate(facts)]


def test_a_tenant_is_not_told_who_gave_way_for_it() -> None:
    told = own_facts(_reclaim(), TENANT, ASK, "c")
    assert [type(fact).__name__ for _, fact in told] == [
        "ReservationConfirmed",
        "ReservationStarted",
    ]


def test_an_operator_is_told_all() -> None:
    assert len(list(own_facts(_reclaim(), OPERATOR, ASK, "c"))) == 4


def test_a_change_of_ones_own_is_told_though_it_says_no_tenant() -> None:
    facts = [_stored(1, ReservationStarted(MINE)), _stored(2, ReservationStarted(THEIRS))]
    told = own_facts(facts, TENANT, GiveBack(MINE), "c")
    assert [fact.reservation_id for _, fact in told] == [MINE]

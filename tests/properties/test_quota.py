"""A quota account agrees with a second by second count of grants and commitments."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from domain.ids import GrantId, PoolId, TenantId
from domain.quota import Account, Grant
from domain.sizes import ReservationClass
from domain.timeline import DAY
from domain.timespan import Instant, Timespan

GUARANTEED, BORROWED = ReservationClass.GUARANTEED, ReservationClass.BORROWED
STEP = DAY // 4  # so that spans lie within a day, meet midnight, and cross several days
STEPS = 24


@dataclass(frozen=True, slots=True)
class Booked:
    """A commitment of a class over a span."""

    klass: ReservationClass
    span: Timespan
    milli: int


instants = st.integers(0, STEPS - 1)
spans = st.tuples(instants, st.integers(1, STEPS)).map(
    lambda pair: Timespan(Instant(pair[0] * STEP), Instant(min(STEPS, pair[0] + pair[1]) * STEP))
)
amounts = st.integers(0, 12)
classes = st.sampled_from([GUARANTEED, BORROWED])
grants = st.lists(
    st.builds(lambda span, nominal, borrow: (span, nominal, borrow), spans, amounts, amounts),
    max_size=4,
)
bookings = st.lists(st.builds(Booked, classes, spans, st.integers(1, 12)), max_size=6)


def account_of(granted: list[tuple[Timespan, int, int]], booked: list[Booked]) -> Account:
    account = Account(TenantId("a"), PoolId("p"))
    for n, (span, nominal, borrow) in enumerate(granted):
        grant = Grant(GrantId(f"g{n}"), nominal, borrow, 0, span.start, span.end)
        account.grants[grant.id] = grant
    for one in booked:
        account.timeline(one.klass).add(one.span.start, one.span.end, one.milli)
        account.live_milli += one.milli
    return account


def left_by_step(
    klass: ReservationClass,
    granted: list[tuple[Timespan, int, int]],
    booked: list[Booked],
    span: Timespan,
) -> dict[int, int]:
    """What is left at each step of a span, counted one by one."""
    left: dict[int, int] = {}
    for at in range(span.start, span.end, STEP):
        nominal = sum(g[1] for g in granted if g[0].start <= at < g[0].end)
        borrow = sum(g[2] for g in granted if g[0].start <= at < g[0].end)
        counted = [b for b in booked if b.span.start <= at < b.span.end]
        own = sum(b.milli for b in counted if b.klass is GUARANTEED)
        others = sum(b.milli for b in counted if b.klass is BORROWED)
        left[at] = nominal - own if klass is GUARANTEED else nominal + borrow - own - others
    return left


@given(grants, bookings, spans, classes)
def test_headroom_is_what_is_left_at_the_tightest_step_of_the_span(
    granted: list[tuple[Timespan, int, int]],
    booked: list[Booked],
    span: Timespan,
    klass: ReservationClass,
) -> None:
    left = left_by_step(klass, granted, booked, span)
    found = account_of(granted, booked).headroom(klass, span)
    tightest = min(left.values())
    assert (found.left_milli, found.at) == (
        tightest,
        next(at for at, amount in left.items() if amount == tightest),
    )


@given(grants, bookings, spans, classes, st.integers(1, 24))
def test_a_booking_falls_short_exactly_when_more_is_asked_than_is_left_at_some_step(
    granted: list[tuple[Timespan, int, int]],
    booked: list[Booked],
    span: Timespan,
    klass: ReservationClass,
    milli: int,
) -> None:
    left = left_by_step(klass, granted, booked, span)
    short = account_of(granted, booked).shortfall(klass, span, milli)
    assert (short is not None) == (milli > min(left.values()))
    if short is not None:
        assert short.left_milli == left[short.at] < milli

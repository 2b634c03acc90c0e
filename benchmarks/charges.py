"""What `bench rating` and `bench export` share: a month of a large fleet, as lines of usage."""

from collections.abc import Iterator

from domain.ids import PoolId, ReservationId, TenantId
from domain.pricing import PriceVersion, Rate, SkuMeter, UnusedSplit
from domain.timespan import FAR_FUTURE, Instant
from projections.consumption import Booking, Line
from projections.terms import TenantLife, Terms

HOUR_MS = 3_600_000
T0_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""

TENANTS = 50
RESERVATIONS = 10_000
"""One GPU each, all month: a row for each GPU-hour."""


def terms() -> Terms:
    """Tenants and one price book."""
    found = Terms()
    rates = (Rate(SkuMeter.RESERVED_USED, "2.50", discount_percent="20"),)
    found.books["standard"] = (
        PriceVersion(
            "standard",
            1,
            "EUR",
            Instant(0),
            FAR_FUTURE,
            (),
            rates,
            UnusedSplit.HOLDER,
            None,
        ),
    )
    for number in range(TENANTS):
        found.tenants[TenantId(f"t{number}")] = TenantLife(None, Instant(0))
    return found


def bookings_of(tenant: int, reservations: int = RESERVATIONS) -> dict[ReservationId, Booking]:
    """The reservations of a tenant."""
    return {
        ReservationId(f"{number:032x}"): Booking(
            TenantId(f"t{tenant}"), PoolId("p"), {"project": "x"}, 1, 2, 1000, "H100"
        )
        for number in range(tenant, reservations, TENANTS)
    }


def lines_of(tenant: int, hours: int, reservations: int = RESERVATIONS) -> Iterator[Line]:
    """A month of a tenant's reservations, hour by hour."""
    for number in range(tenant, reservations, TENANTS):
        for hour in range(hours):
            yield Line(
                PoolId("p"),
                T0_MS + hour * HOUR_MS,
                TenantId(f"t{tenant}"),
                SkuMeter.RESERVED_USED,
                ReservationId(f"{number:032x}"),
                "H100",
                3_600_000_000 - number,
            )

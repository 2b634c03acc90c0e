"""All read models of this release."""

from projections.billing import Billing
from projections.calendar import Calendar
from projections.fleet import Fleet
from projections.projection import Projection
from projections.requests import Requests
from projections.reservations import Reservations
from projections.usage import Usage


def all_projections() -> list[Projection]:
    """A fresh, empty one of each."""
    return [Fleet(), Reservations(), Calendar(), Usage(), Requests(), Billing()]

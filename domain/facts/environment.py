"""Facts of the environment that a reservation asked for."""

from collections.abc import Mapping
from dataclasses import dataclass

from domain.environment import Environment
from domain.facts.fact import OfReservation
from domain.facts.hardware import ReportStamp
from domain.facts.node import CheckReport
from domain.ids import NodeId, ReservationId


@dataclass(frozen=True, slots=True)
class EnvironmentRequested(OfReservation):
    """A reservation is to have an environment of its own on its units."""

    reservation_id: ReservationId
    environment: Environment


@dataclass(frozen=True, slots=True)
class EnvironmentProvisioned(OfReservation):
    """An environment was set up on these nodes; it is not accepted yet."""

    reservation_id: ReservationId
    nodes: tuple[NodeId, ...]
    evidence: Mapping[str, str]
    stamp: ReportStamp


@dataclass(frozen=True, slots=True)
class EnvironmentAccepted(OfReservation):
    """An environment passed every check and is its tenant's."""

    reservation_id: ReservationId
    checks: tuple[CheckReport, ...]
    stamp: ReportStamp


@dataclass(frozen=True, slots=True)
class EnvironmentFailed(OfReservation):
    """An environment did not pass a check and is not handed over."""

    reservation_id: ReservationId
    checks: tuple[CheckReport, ...]
    stamp: ReportStamp


@dataclass(frozen=True, slots=True)
class EnvironmentTornDown(OfReservation):
    """An environment is no more; its nodes are not wiped yet."""

    reservation_id: ReservationId
    stamp: ReportStamp


@dataclass(frozen=True, slots=True)
class EnvironmentWiped(OfReservation):
    """Nothing of an environment is left on a node, as the evidence shows."""

    reservation_id: ReservationId
    node_id: NodeId
    evidence: Mapping[str, str]
    stamp: ReportStamp

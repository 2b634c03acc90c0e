"""Consumption: who had how much of which GPUs, as what, in each hour; what rating starts from.

The books of unit-seconds (`usage`) say in which state every unit was. This fold is the same one
and says besides for whom: by reservation, model and meter. Two amounts stand outside the sum of
states: overrun (a holder's own processes on units that it should have left: service time to the
pool) and shortage (promised but not delivered).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from domain.facts import hardware
from domain.facts import reservation as r
from domain.facts.fact import OfNode, OfReservation
from domain.ids import PoolId, ReservationId, TenantId
from domain.pricing import FORGONE, SkuMeter
from domain.record import Recorded
from domain.timespan import FAR_FUTURE, Instant
from domain.units import Piece
from projections.forgone import Forgone, Gone, notice
from projections.holdings import Held
from projections.lending import Hour, Quotas, lent
from projections.machines import Gpu, Machine, Run
from projections.meter import Meter
from projections.terms import Terms
from projections.usage import Usage

POSSESSED = {
    "reserved_used": SkuMeter.RESERVED_USED,
    "reserved_unused": SkuMeter.RESERVED_UNUSED,
    "borrowed": SkuMeter.BORROWED,
    "overflow": SkuMeter.OVERFLOW,
}
"""The states in which a unit is delivered, and the meter that counts it."""


_RESERVED = frozenset({SkuMeter.RESERVED_USED, SkuMeter.RESERVED_UNUSED})


class Line(NamedTuple):
    """What one reservation had on one meter in an hour, or in a part of an hour."""

    pool_id: PoolId
    start_ms: int
    tenant_id: TenantId
    meter: SkuMeter
    reservation_id: ReservationId
    model: str
    gpu_microseconds: int
    notice_seconds: int = 0
    """How long before its start it was booked; of forgone time, how long before it was let go."""
    quote: str = ""
    """The price book that it was booked under, as it stood; empty for the one in force."""


@dataclass(slots=True)
class Booking:
    """What a charge says of its reservation."""

    tenant_id: TenantId
    pool_id: PoolId
    tags: Mapping[str, str]
    seq_from: int
    seq_to: int
    milli: int
    model: str
    notice_seconds: int = 0
    """How long before its start it was booked."""
    quote: str = ""
    quoted_until: Instant = FAR_FUTURE
    """The end of the window that was booked: the quote is for no longer."""
    is_observed: bool = False
    """Whether anybody ever looked whether its units were occupied."""
    promised: int = 0
    delivered: int = 0
    short: int = 0

    def quote_at(self, start_ms: int) -> str:
        """The quote of what begins at an instant."""
        return self.quote if start_ms * 1000 < self.quoted_until else ""


class Consumption(Usage):
    """The books of unit-seconds with the holder of each."""

    def __init__(self, *, grace: int = 0, cuts: Iterable[Instant] = ()) -> None:
        """`grace`: how late facts may come, in microseconds; `cuts`: where hours are split."""
        super().__init__()
        self._grace = grace
        self.terms = Terms()
        self.quotas = Quotas()
        self.bookings: dict[ReservationId, Booking] = {}
        self.billed = Meter(cuts_ms=tuple(sorted({cut // 1000 for cut in cuts})))
        self.seq = 0
        self.last = Instant(0)
        """The latest instant that the facts speak of as past."""
        self._forgone = Forgone()
        self._occupied: dict[ReservationId, list[tuple[Piece, int]]] = {}
        self._overruns: dict[ReservationId, list[tuple[Piece, str]]] = {}

    def apply(self, recorded: Recorded) -> None:
        """Fold one fact."""
        self.seq, self.last = recorded.seq, max(self.last, recorded.recorded_at)
        if not isinstance(recorded.fact, OfReservation | OfNode):
            self.terms.apply(recorded)
            self.quotas.apply(recorded)
        super().apply(recorded)

    def lines(self, until: Instant) -> list[Line]:
        """Close the books at an instant, and what everybody had up to it."""
        self.close(until)
        self.billed.settle(until // 1000)
        lines = [
            Line(
                PoolId(pool),
                start,
                TenantId(who),
                meter,
                ReservationId(held),
                model,
                amount,
                self.bookings[held].notice_seconds,
                self.bookings[held].quote_at(start),
            )
            for (pool, start, who, meter, held, model), amount in self.billed.hours.items()
        ]
        return lines + self._let_go(until) + self._lent(lines)

    def _let_go(self, until: Instant) -> list[Line]:
        """What holders let go of and nobody booked anew, where any book ever had a price for it."""
        if not self.terms.prices_any_of(FORGONE):
            return []
        meter = Meter(cuts_ms=self.billed.cuts_ms)
        for gone in self._forgone.up_to(until):
            meter.add(self._account_of(gone), gone.start // 1000, gone.end // 1000, gone.milli)
        return [
            Line(
                PoolId(pool),
                start,
                TenantId(who),
                kind,
                ReservationId(held),
                model,
                amount,
                gave,
                self.bookings[held].quote_at(start),
            )
            for (pool, start, who, kind, held, model, gave), amount in meter.hours.items()
        ]

    def _account_of(self, gone: Gone) -> tuple[Any, ...]:
        booking = self.bookings[gone.reservation_id]
        return (
            booking.pool_id,
            booking.tenant_id,
            gone.meter,
            gone.reservation_id,
            booking.model,
            gone.notice_seconds,
        )

    def _lent(self, lines: list[Line]) -> list[Line]:
        """Whose idle quota was borrowed: lines of lenders, who are not told for whom it was."""
        hours: defaultdict[tuple[PoolId, int], Hour] = defaultdict(Hour)
        for line in lines:
            if line.meter is SkuMeter.BORROWED and line.gpu_microseconds:
                hour = hours[line.pool_id, line.start_ms]
                before = hour.borrowed.get(line.model, 0)
                hour.borrowed[line.model] = before + line.gpu_microseconds
                hour.borrowers.add(line.tenant_id)
        if not hours:
            return []
        chains = {name: tuple(self.terms.chain(name)) for name in self.terms.tenants}
        for line in lines:
            of_hour = hours.get((line.pool_id, line.start_ms))
            if of_hour is not None and line.meter in _RESERVED:
                for name in chains[line.tenant_id]:
                    had = of_hour.reserved.get(name, 0)
                    of_hour.reserved[name] = had + line.gpu_microseconds
        found = lent(hours, self.quotas, chains, self.billed.cuts_ms)
        return [
            Line(pool, start, who, SkuMeter.LENT, ReservationId(""), model, amount)
            for pool, start, who, model, amount in found
        ]

    def _reservation(self, recorded: Recorded, fact: OfReservation) -> None:
        match fact:
            case r.ReservationConfirmed() | r.ReservationHeld():
                self._book(recorded, fact)
            case r.HoldConfirmed():
                self.bookings[fact.reservation_id].seq_from = recorded.seq
            case _:
                pass
        booking = self.bookings.get(fact.reservation_id)
        if booking is not None:
            booking.seq_to = recorded.seq
        self._forgone.follow(recorded, fact, self._holdings.by_id.get(fact.reservation_id))
        super()._reservation(recorded, fact)
        if booking is not None:
            self._promise_later(recorded, fact, booking)

    def _book(self, recorded: Recorded, fact: r.ReservationConfirmed | r.ReservationHeld) -> None:
        models = fact.shape.models
        model = models[0] if len(models) == 1 else ""
        pieces = [piece for segment in fact.segments for piece in segment.pieces]
        if not model and pieces and pieces[0].node_id in self._nodes:
            model = self._nodes[pieces[0].node_id].gpus[0].model
        self.bookings[fact.reservation_id] = Booking(
            fact.tenant_id,
            fact.pool_id,
            fact.tags,
            recorded.seq,
            recorded.seq,
            fact.milli,
            model,
            notice(recorded.recorded_at, fact.start),
            fact.quote,
            fact.end,
        )

    def _promise_later(self, recorded: Recorded, fact: OfReservation, booking: Booking) -> None:
        """From when on how much is promised, as a fact says it."""
        at, milli = recorded.occurred_at, 0
        match fact:
            case r.ReservationStarted():
                milli = booking.milli
            case r.ReservationShrunk():
                at, milli, booking.milli = fact.at, fact.milli, fact.milli
            case r.ReservationPreempted():
                at = fact.at
            case r.ReservationEnded():
                pass
            case _:
                return
        only_running = not isinstance(fact, r.ReservationStarted)

        def promise(ms: int) -> None:
            if booking.promised or not only_running:
                booking.promised = milli
                self._shortage(fact.reservation_id, booking, ms)

        self._later(at, recorded.seq, promise)

    def _shortage(self, reservation_id: ReservationId, booking: Booking, ms: int) -> None:
        short = max(0, booking.promised - booking.delivered)
        if short != booking.short:
            account = (
                booking.pool_id,
                booking.tenant_id,
                SkuMeter.SHORTAGE,
                reservation_id,
                booking.model,
            )
            self.billed.change(account, ms, short - booking.short)
            booking.short = short

    def _count(self, where: Machine, runs: Iterable[tuple[Gpu, Run]], ms: int, sign: int) -> None:
        super()._count(where, runs, ms, sign)
        if where.condition:
            return
        widths: dict[tuple[str, str, SkuMeter, ReservationId, str], int] = {}
        for gpu, run in runs:
            meter = POSSESSED.get(run.state)
            if meter is None or run.holder is None or gpu.is_failed:
                continue
            account = (gpu.pool_id, run.tenant, meter, run.holder, gpu.model)
            widths[account] = widths.get(account, 0) + sign * (run.end - run.first)
        for account, width in widths.items():
            self.billed.change(account, ms, width)
            holder = account[3]
            booking = self.bookings[holder]
            booking.delivered += width
            self._shortage(holder, booking, ms)

    def _node(self, recorded: Recorded, fact: OfNode) -> None:
        if isinstance(fact, hardware.ActivityObserved):
            booking = self.bookings.get(fact.reservation_id)
            if booking is not None:
                booking.is_observed = True
            if fact.occupied:
                self._later(fact.start, recorded.seq, lambda ms: self._occupy(fact, ms))
                self._later(fact.end, recorded.seq, lambda ms: self._vacate(fact, ms))
                return
        super()._node(recorded, fact)

    def _occupy(self, fact: hardware.ActivityObserved, ms: int) -> None:
        """Processes of the holder run on units until the end of what was observed."""
        occupied = self._occupied.setdefault(fact.reservation_id, [])
        for piece in fact.pieces:
            occupied.append((piece, fact.end // 1000))
            if not self._is_entitled(fact.reservation_id, piece):
                self._overrun(fact.reservation_id, piece, ms)

    def _vacate(self, fact: hardware.ActivityObserved, ms: int) -> None:
        """What was observed is over."""
        left = [entry for entry in self._occupied.get(fact.reservation_id, ()) if entry[1] > ms]
        if left:
            self._occupied[fact.reservation_id] = left
        else:
            self._occupied.pop(fact.reservation_id, None)
        still = [piece for piece, _ in left]
        self._end_overruns(fact.reservation_id, ms, still)

    def _is_entitled(self, reservation_id: ReservationId, piece: Piece) -> bool:
        return any(piece.overlaps(had) for had in self._marked.get(reservation_id, ()))

    def _leave(self, held: Held, piece: Piece, ms: int) -> None:
        super()._leave(held, piece, ms)
        for occupied, until in self._occupied.get(held.reservation_id, ()):
            if until > ms and occupied.overlaps(piece):
                first = max(occupied.first_milli, piece.first_milli)
                width = min(occupied.end_milli, piece.end_milli) - first
                self._overrun(held.reservation_id, Piece(piece.node_id, first, width), ms)

    def _overrun(self, reservation_id: ReservationId, piece: Piece, ms: int) -> None:
        """Units that are not their holder's any more, and that it possesses, run over."""
        where = self._nodes.get(piece.node_id)
        if where is None or reservation_id not in self.bookings:
            return
        possessed = where.possessed.get(reservation_id, ())
        running = self._overruns.setdefault(reservation_id, [])
        if not any(piece.overlaps(had) for had in possessed):
            return
        if any(piece.overlaps(had) for had, _ in running):
            return
        model = where.gpus[piece.slots[0]].model
        running.append((piece, model))
        self._meter_overrun(reservation_id, piece, model, ms, 1)

    def _meter_overrun(
        self, reservation_id: ReservationId, piece: Piece, model: str, ms: int, sign: int
    ) -> None:
        booking = self.bookings[reservation_id]
        account = (booking.pool_id, booking.tenant_id, SkuMeter.OVERRUN, reservation_id, model)
        self.billed.change(account, ms, sign * piece.width_milli)

    def _end_overruns(self, reservation_id: ReservationId, ms: int, still: list[Piece]) -> None:
        kept: list[tuple[Piece, str]] = []
        for piece, model in self._overruns.pop(reservation_id, ()):
            if any(piece.overlaps(other) for other in still):
                kept.append((piece, model))
            else:
                self._meter_overrun(reservation_id, piece, model, ms, -1)
        if kept:
            self._overruns[reservation_id] = kept

    def _freed(self, fact: hardware.UnitsFreed | hardware.ReleasePresumed, ms: int) -> None:
        super()._freed(fact, ms)
        gone = [
            p for p, _ in self._overruns.get(fact.reservation_id, ()) if p.node_id == fact.node_id
        ]
        if gone:
            others = [
                p for p, _ in self._overruns[fact.reservation_id] if p.node_id != fact.node_id
            ]
            self._end_overruns(fact.reservation_id, ms, others)

"""Telling a story to a ledger, and holding what came of it against what was expected."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from connectors.scenarios.reading import Scenario, ScenarioWrong
from domain import commands as c
from domain.commands import COMMANDS, Command
from domain.facts.node import LevelGroup
from domain.fleet_state import Node
from domain.ids import NodeId, PoolId, PrincipalId, ReservationId, TenantId
from domain.ledger import Ledger
from domain.policy import PoolPolicy
from domain.principal import Principal, Role
from domain.record import Recorded
from domain.states import SERVING
from domain.submission import TICK, Outcome, OutcomeKind, Submission
from domain.timespan import Instant
from domain.units import MILLI_PER_GPU
from projections.chronicle import Chronicle
from projections.consumption import Consumption
from projections.gantt import Gantt
from projections.wording import worded
from schemas.json_form import BadField, instant_text, parse
from schemas.registry import Registry

POOL = PoolId("P")
OPERATOR = Principal(PrincipalId("operator"), Role.OPERATOR)
GPU_SECOND = 1_000_000
"""GPU-microseconds in a GPU-second."""
STOPS_MAX = 100_000
"""How often the clock stops on its way to one instant."""
ROUNDS_MAX = 8
"""How often hardware is heard after one step."""

_NAMED = (
    "ReservationConfirmed",
    "ReservationHeld",
    "ReservationQueued",
    "MaintenancePlanned",
    "QuotaGranted",
)


class Stage(Protocol):
    """A ledger to tell a story to."""

    def submit(self, submissions: Sequence[Submission]) -> Sequence[Outcome]:
        """Durable outcomes."""
        ...

    def new_facts(self) -> list[Recorded]:
        """What was recorded since it was last asked."""
        ...

    def ledger(self) -> Ledger:
        """The state as the writer has it."""
        ...

    def next_due(self) -> Instant | None:
        """When something falls due by itself."""
        ...

    def restart(self) -> None:
        """The writer dies, and another one takes over."""
        ...


class Hardware(Protocol):
    """A fleet and what keeps it in step."""

    def act(self, facts: Sequence[Recorded], now: Instant) -> list[Submission]:
        """What it reports after hearing facts."""
        ...

    def next_at(self) -> Instant | None:
        """When it has something to do or to tell."""
        ...


@dataclass(slots=True)
class Told:
    """A story that went as it was expected."""

    name: str
    steps: int
    events: int
    picture: Gantt
    """Who held what, and when."""


@dataclass(slots=True)
class Teller:
    """One story on one stage."""

    scenario: Scenario
    stage: Stage
    registry: Registry
    hardware: Hardware | None
    listener: Callable[[int, list[str]], None] | None = None
    """Hears, for each step, what was recorded because of it."""
    now: Instant = field(init=False)
    names: dict[str, str] = field(default_factory=dict)
    usage: Consumption = field(default_factory=Consumption)
    chronicle: Chronicle = field(default_factory=Chronicle)
    seen: list[str] = field(default_factory=list)
    count: int = 0
    keys: int = 0
    at_step: int = -1

    def __post_init__(self) -> None:
        """The clock stands at the story's start."""
        self.now = self.scenario.start

    def tell(self) -> Told:
        """From the fleet to the last step. Raises `ScenarioWrong`."""
        self._set_up()
        for number, step in enumerate(self.scenario.steps):
            self.at_step = number
            try:
                self._step(step)
            except (ValueError, AssertionError, LookupError) as error:
                raise self.scenario.wrong(number, str(error) or type(error).__name__) from error
        names = {id_: name for name, id_ in self.names.items()}
        picture = self.chronicle.gantt(self.scenario.name, self.scenario.start, self.now, names)
        return Told(self.scenario.name, len(self.scenario.steps), self.count, picture)

    def _set_up(self) -> None:
        values = self.scenario.values
        fleet = values.get("fleet", {})
        rack_of = fleet.get("rack_of", 4)
        commands: list[Command] = [c.OpenPool(POOL, "", parse(PoolPolicy, values.get("pool", {})))]
        for number in range(fleet.get("nodes", 2)):
            rack = (LevelGroup("rack", f"r{number // rack_of + 1}"),)
            name, gpus = NodeId(f"n{number + 1}"), fleet.get("gpus", 8)
            model = fleet.get("model", "H100")
            commands.append(c.JoinNode(POOL, name, model, gpus, levels=rack))
        for name, tenant in values.get("tenants", {"a": {"quota": 1000}}).items():
            parent = TenantId(tenant["parent"]) if tenant.get("parent") else None
            commands.append(c.RegisterTenant(TenantId(name), parent))
            if "quota" in tenant:
                nominal, borrow = tenant["quota"] * MILLI_PER_GPU, tenant.get("borrow", 0)
                commands.append(c.GrantQuota(TenantId(name), POOL, nominal, borrow * MILLI_PER_GPU))
        outcomes = self.stage.submit([self._submission(command, OPERATOR) for command in commands])
        for command, outcome in zip(commands, outcomes, strict=True):
            if outcome.kind is not OutcomeKind.ACCEPTED:
                raise ScenarioWrong(f"{self.scenario.file}: {command}: {outcome.refusal}")
        self._hear()
        self.seen.clear()

    def _submission(self, command: Command, who: Principal, key: str = "") -> Submission:
        self.keys += 1
        contract, body = self.registry.encode(command)
        return Submission(who, key or f"key-{self.keys}", contract.type, body, self.now)

    def _step(self, step: dict[str, Any]) -> None:
        for word in ("at", "advance"):
            if word in step:
                self._go_on(self.scenario.instant(step[word]))
        if "restart" in step:
            self.stage.restart()
        parts = step.get("together") or ([step] if "do" in step or "book" in step else [])
        if parts:
            self._submit(parts)
        if "check" in step:
            self._check(step["check"])

    def _go_on(self, to: Instant) -> None:
        """Time goes on; what is due happens, and hardware is heard whenever it has a word."""
        for _ in range(STOPS_MAX):
            stops = (self.hardware.next_at(), self.stage.next_due()) if self.hardware else ()
            ahead = [stop for stop in stops if stop is not None and self.now < stop < to]
            self.now = max(self.now, min([*ahead, to]))
            self.stage.submit([Submission(OPERATOR, "tick", TICK, b"", self.now)])
            self._hear()
            if self.now >= to:
                return
        raise ValueError(f"more than {STOPS_MAX} things happen before {instant_text(to)}")

    def _submit(self, parts: Sequence[dict[str, Any]]) -> None:
        sent = [(part, self._submission(*self._command(part))) for part in parts]
        batch = [s for part, s in sent for _ in range(part.get("times", 1))]
        outcomes = iter(self.stage.submit(batch))
        for part, _ in sent:
            for _ in range(part.get("times", 1)):
                outcome = next(outcomes)
                self._expect(part, outcome)
                self._name(part, outcome)
        self._hear()

    def _command(self, part: dict[str, Any]) -> tuple[Command, Principal, str]:
        who = principal_named(part.get("by", "operator"))
        try:
            if "book" in part:
                values = self.scenario.plain(part["book"], self.names)
                return parse(c.RequestReservation, _booking(values)), who, part.get("key", "")
            kind = COMMANDS.get(part["do"])
            if kind is None:
                raise ValueError(f"no command is named {part['do']}")
            values = self.scenario.plain(part.get("with", {}), self.names)
            return parse(kind, values), who, part.get("key", "")
        except BadField as error:
            raise ValueError(str(error)) from error

    def _name(self, part: dict[str, Any], outcome: Outcome) -> None:
        """Remember what came into being under the name that the story gives it."""
        if "as" not in part:
            return
        for fact in outcome.facts:
            if fact.type.split(".")[0] in _NAMED:
                thing = self.registry.decode(fact.type, fact.body)
                for name in ("reservation_id", "maintenance_id", "grant_id"):
                    if hasattr(thing, name):
                        self.names[part["as"]] = getattr(thing, name)

    def _expect(self, part: dict[str, Any], outcome: Outcome) -> None:
        wanted = part.get("expect", "accepted")
        if isinstance(wanted, dict):
            self._expect_refusal(wanted, outcome)
            return
        got = outcome.kind.value
        if outcome.facts and outcome.facts[-1].type.startswith("ReservationQueued."):
            got = "queued"
        words = f"{got}: {outcome.refusal.reason.code}" if outcome.refusal else got
        assert got == wanted, f"expected {wanted}, got {words} {outcome.problem}".strip()

    def _expect_refusal(self, wanted: dict[str, Any], outcome: Outcome) -> None:
        refusal = outcome.refusal
        assert refusal is not None, f"expected a refusal, got {outcome.kind.value}"
        code = refusal.reason.code
        assert code == wanted["refused"], f"refused for {code}, not for {wanted['refused']}"
        for name, value in wanted.get("facts", {}).items():
            plain = self.scenario.plain(value, self.names)
            got = refusal.facts.get(name)
            told = instant_text(int(got)) if got and got.isdigit() and name == "at" else got
            assert told == str(plain), f"{name} is {told}, not {plain}"
        if "offers" in wanted:
            starts = [instant_text(offer.start) for offer in refusal.offers]
            meant = [instant_text(self.scenario.instant(text)) for text in wanted["offers"]]
            assert starts == meant, f"offers begin at {starts}, not at {meant}"

    def _hear(self) -> None:
        """Fold what was recorded; let hardware act on it and report, until it is quiet."""
        for _ in range(ROUNDS_MAX):
            facts = self.stage.new_facts()
            if self.listener and facts:
                told = [f"{_clock(each.occurred_at)} {worded(each.fact)}" for each in facts]
                self.listener(self.at_step, told)
            for recorded in facts:
                self.count += 1
                self.seen.append(type(recorded.fact).__name__)
                self.usage.apply(recorded)
                self.chronicle.apply(recorded)
            reports = self.hardware.act(facts, self.now) if self.hardware else []
            if not reports:
                return
            self.stage.submit(reports)

    def _check(self, check: dict[str, Any]) -> None:
        ledger = self.stage.ledger()
        for name, state in check.get("states", {}).items():
            got = self._state(ledger, name)
            assert got == state, f"{name} is {got}, not {state}"
        for name, nodes in check.get("nodes_of", {}).items():
            held = self._held_now(ledger, name)
            assert held == sorted(nodes), f"{name} holds {held}, not {sorted(nodes)}"
        for name, gpus in check.get("short", {}).items():
            short = ledger.reservations[ReservationId(self.names[name])].short_milli(self.now)
            assert short == gpus * MILLI_PER_GPU, f"{name} lacks {short / MILLI_PER_GPU:g} GPUs"
        if "free" in check:
            free = sum(_free(node, self.now) for node in ledger.node_order)
            assert free == check["free"] * MILLI_PER_GPU, f"{free / MILLI_PER_GPU:g} GPUs are free"
        if "events" in check:
            assert self.seen == check["events"], f"the events are {self.seen}"
            self.seen.clear()
        if "usage" in check:
            self._check_usage(check["usage"])
        if "billed" in check:
            self._check_billed(check["billed"])

    def _state(self, ledger: Ledger, name: str) -> str:
        if name in self.names:
            return ledger.reservations[ReservationId(self.names[name])].state.value
        return ledger.nodes[NodeId(name)].state.value

    def _held_now(self, ledger: Ledger, name: str) -> list[str]:
        found = ledger.reservations[ReservationId(self.names[name])]
        at = max(self.now, found.start)
        return sorted({h.piece.node_id for h in found.holdings if h.start <= at < h.end})

    def _check_usage(self, wanted: dict[str, int]) -> None:
        """GPU-seconds by state; the books are closed at this instant, so ask at the end."""
        self.usage.close(self.now)
        totals: dict[str, int] = {}
        for row in self.usage.usage:
            totals[row[3]] = totals.get(row[3], 0) + row[4]
        capacity = sum(row[2] for row in self.usage.capacity)
        assert sum(totals.values()) == capacity, "the books do not balance"
        for state, amount in wanted.items():
            got = totals.get(state, 0)
            assert got == amount * GPU_SECOND, f"{state} is {got / GPU_SECOND:g} GPU-seconds"

    def _check_billed(self, wanted: dict[str, dict[str, float]]) -> None:
        """GPU-seconds by reservation and meter, exactly and all of them."""
        totals: dict[str, dict[str, float]] = {}
        for line in self.usage.lines(self.now):
            meters = totals.setdefault(line.reservation_id, {})
            had = meters.get(line.meter.value, 0)
            meters[line.meter.value] = had + line.gpu_microseconds / GPU_SECOND
        for name, meters in wanted.items():
            got = totals.get(self.names[name], {})
            assert got == meters, f"{name} is billed {got}"


def principals_of(scenario: Scenario) -> set[Principal]:
    """Whoever has a word in a story."""
    parts = [part for step in scenario.steps for part in (step, *step.get("together", ()))]
    return {OPERATOR} | {principal_named(part["by"]) for part in parts if "by" in part}


def principal_named(name: str) -> Principal:
    """A role's, or a user of a tenant."""
    if name in {role.value for role in Role} - {Role.TENANT.value}:
        return Principal(PrincipalId(name), Role(name))
    return Principal(PrincipalId(f"user-of-{name}"), Role.TENANT, TenantId(name))


def _clock(at: Instant) -> str:
    """The time of day."""
    return instant_text(at)[11:19]


def _booking(values: dict[str, Any]) -> dict[str, Any]:
    """`book` in the words of the command: tenant, gpus, nodes, share, from, to, class, hold."""
    words = {
        "tenant": "tenant_id",
        "from": "start",
        "to": "end",
        "class": "klass",
        "hold": "hold_seconds",
        "offers": "offers_max",
    }
    sizes = {"gpus": "gpus", "nodes": "nodes", "share": "share_milli"}
    shapes = {"models": "models", "labels": "labels", "same_level": "same_level"}
    command: dict[str, Any] = {"pool_id": POOL, "size": {}, "shape": {}}
    for name, value in values.items():
        if name in sizes:
            command["size"][sizes[name]] = value
        elif name in shapes:
            command["shape"][name] = value
        else:
            command[words.get(name, name)] = value
    return command


def _free(node: Node, at: Instant) -> int:
    """How much of a serving node nobody holds at an instant."""
    if node.state not in SERVING:
        return 0
    whole = node.piece
    later = Instant(at + 1)
    held = node.lanes.held(0, whole.end_milli, at, later)
    taken = sum(end - first for first, end, *_ in held)
    return whole.width_milli - taken - len(node.failed_slots) * MILLI_PER_GPU

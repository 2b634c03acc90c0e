"""Instances from parsed JSON, each field checked; a fault is named by its RFC 6901 pointer."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from solvers.planning.instance import (
    NODE_GPUS_MAX,
    NODES_MAX,
    RESERVATIONS_MAX,
    TIME_MAX,
    VALUE_MAX,
    Instance,
    InstanceAsk,
    InstanceNode,
)

T = TypeVar("T")

NODE_FIELDS = {"id", "rack", "type", "gpus", "down"}
ASK_FIELDS = {
    *("id", "tenant", "exclusive", "topo", "gpus", "nodes", "release", "deadline", "duration"),
    *("types", "value", "at", "move_cost", "started"),
}
OBJECTIVES = ("max_value", "max_value_then_min_moves")


class InstanceRefused(ValueError):
    """A file that is no list of instances: where, and what was expected there."""

    def __init__(self, pointer: str, what: str) -> None:
        super().__init__(f"{pointer or 'the file'}: {what}")
        self.pointer = pointer
        self.what = what


def read_instances(content: object) -> tuple[list[Instance], list[str]]:
    """Every instance of a file (a list of them, or one), and the pointers of unknown fields.

    Raises InstanceRefused at the first fault; nothing is read in part.
    """
    if isinstance(content, dict):
        return _all([(content, "")])
    if not isinstance(content, list):
        raise InstanceRefused("", "must be a list of instances")
    return _all([(each, f"/{number}") for number, each in enumerate(content)])


def _all(given: list[tuple[object, str]]) -> tuple[list[Instance], list[str]]:
    unknown: list[str] = []
    found = [_instance(each, pointer, unknown) for each, pointer in given]
    names: set[str] = set()
    for instance, (_, pointer) in zip(found, given, strict=True):
        if instance.name in names:
            raise InstanceRefused(f"{pointer}/name", f"{instance.name!r} was there before")
        names.add(instance.name)
    return found, unknown


class _Fields:
    """The fields of one JSON object, read once each."""

    def __init__(self, value: object, pointer: str) -> None:
        if not isinstance(value, dict):
            raise InstanceRefused(pointer, "must be an object")
        self.value: dict[str, Any] = value
        self.pointer = pointer

    def fault(self, name: str, what: str) -> InstanceRefused:
        return InstanceRefused(f"{self.pointer}/{_escaped(name)}", what)

    def text(self, name: str, default: str | None = None) -> str:
        given = self.value.get(name, default)
        if not isinstance(given, str) or (default is None and not given):
            raise self.fault(name, "must be a text")
        return given

    def flag(self, name: str) -> bool:
        given = self.value.get(name, False)
        if not isinstance(given, bool):
            raise self.fault(name, "must be true or false")
        return given

    def number(self, name: str, low: int, high: int, default: int | None = None) -> int:
        given = self.value.get(name, default)
        if isinstance(given, bool) or not isinstance(given, int) or not low <= given <= high:
            raise self.fault(name, f"must be a whole number from {low} to {high}")
        return given

    def items(self, name: str, most: int, read: Callable[[object, str], T]) -> list[T]:
        given = self.value.get(name, [])
        if not isinstance(given, list):
            raise self.fault(name, "must be a list")
        if len(given) > most:
            raise self.fault(name, f"has {len(given)} entries, the most is {most}: split it")
        where = f"{self.pointer}/{_escaped(name)}"
        return [read(each, f"{where}/{number}") for number, each in enumerate(given)]

    def strangers(self, known: set[str]) -> Iterator[str]:
        return (f"{self.pointer}/{_escaped(name)}" for name in self.value if name not in known)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _instance(value: object, pointer: str, unknown: list[str]) -> Instance:
    fields = _Fields(value, pointer)
    for name in ("nodes", "reservations"):
        if name not in fields.value:
            raise fields.fault(name, "is missing")

    def node_at(each: object, where: str) -> InstanceNode:
        return _node(_Fields(each, where), unknown)

    nodes = fields.items("nodes", NODES_MAX, node_at)
    _once([node.id for node in nodes], f"{pointer}/nodes")
    known = {node.id for node in nodes}

    def ask_at(each: object, where: str) -> InstanceAsk:
        return _ask(_Fields(each, where), known, unknown)

    asks = fields.items("reservations", RESERVATIONS_MAX, ask_at)
    _once([ask.id for ask in asks], f"{pointer}/reservations")
    objective = fields.text("objective", "max_value")
    if objective not in OBJECTIVES:
        raise fields.fault("objective", f"must be one of {', '.join(OBJECTIVES)}")
    name = fields.text("name", "instance")
    quota = _quota(fields)
    return Instance(name, tuple(nodes), tuple(asks), quota, objective != "max_value")


def _quota(fields: _Fields) -> Mapping[str, int]:
    given = _Fields(fields.value.get("quota", {}), f"{fields.pointer}/quota")
    return {tenant: given.number(tenant, 0, VALUE_MAX) for tenant in given.value}


def _once(ids: list[str], pointer: str) -> None:
    seen: set[str] = set()
    for number, each in enumerate(ids):
        if each in seen:
            raise InstanceRefused(f"{pointer}/{number}/id", f"{each!r} was there before")
        seen.add(each)


def _node(fields: _Fields, unknown: list[str]) -> InstanceNode:
    unknown += fields.strangers(NODE_FIELDS)
    down = fields.items("down", RESERVATIONS_MAX, _span)
    gpus = fields.number("gpus", 0, NODE_GPUS_MAX)
    return InstanceNode(
        fields.text("id"), fields.text("rack", ""), fields.text("type", ""), gpus, tuple(down)
    )


def _span(value: object, pointer: str) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise InstanceRefused(pointer, "must be [from, until]")
    fields = _Fields(dict(zip(("0", "1"), value, strict=True)), pointer)
    start, end = (fields.number(name, -TIME_MAX, TIME_MAX) for name in ("0", "1"))
    if start >= end:
        raise InstanceRefused(pointer, "must end after it begins")
    return start, end


def _ask(fields: _Fields, nodes: set[str], unknown: list[str]) -> InstanceAsk:
    unknown += fields.strangers(ASK_FIELDS)
    given = [name for name in ("gpus", "nodes") if fields.value.get(name) is not None]
    if len(given) != 1:
        raise InstanceRefused(fields.pointer, "must have either gpus or nodes")
    size = fields.number(given[0], 1, NODES_MAX if given[0] == "nodes" else NODE_GPUS_MAX * 1000)
    topo = fields.text("topo", "any")
    if topo not in {"any", "rack"}:
        raise fields.fault("topo", "must be any or rack")
    release = fields.number("release", -TIME_MAX, TIME_MAX)
    deadline = fields.number("deadline", -TIME_MAX, TIME_MAX)
    if deadline <= release:
        raise fields.fault("deadline", "must be after release")
    at = fields.items("at", NODES_MAX, _word) if fields.value.get("at") is not None else []
    for number, node in enumerate(at):
        if node not in nodes or node in at[:number]:
            raise fields.fault("at", f"names {node!r}, which is no node, or twice")
    if fields.flag("started") and len(at) != (size if given[0] == "nodes" else 1):
        raise fields.fault("at", "must name the nodes of a started reservation")
    models = None
    if fields.value.get("types") is not None:
        models = tuple(fields.items("types", NODES_MAX, _word))
    return InstanceAsk(
        fields.text("id"),
        fields.text("tenant", ""),
        gpus=size if given[0] == "gpus" else 0,
        nodes=size if given[0] == "nodes" else 0,
        release=release,
        deadline=deadline,
        duration=fields.number("duration", 1, 2 * TIME_MAX),
        value=fields.number("value", 0, VALUE_MAX),
        exclusive=fields.flag("exclusive"),
        one_rack=topo == "rack",
        models=models,
        at=tuple(at),
        move_cost=fields.number("move_cost", 0, VALUE_MAX, 1),
        started=fields.flag("started"),
    )


def _word(value: object, pointer: str) -> str:
    if not isinstance(value, str) or not value:
        raise InstanceRefused(pointer, "must be a text")
    return value

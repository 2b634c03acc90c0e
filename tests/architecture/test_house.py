"""The house stands as its plan says: sizes, words, no clock and no dice in the domain."""

import ast
from pathlib import Path

import pytest

from domain.commands import COMMANDS
from domain.evolve import STEPS
from domain.facts import FACTS
from domain.messages import MESSAGES
from domain.refusals import RULES, Reason
from domain.states import NODE_STEPS, RESERVATION_STEPS, NodeState, ReservationState
from schemas.author import author, missing_words
from schemas.registry import registry

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("domain", "projections", "solvers", "schemas", "connectors")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
FORBIDDEN_NAMES = {"utils", "helpers", "common", "base", "manager", "misc"}
WORLD = {"time", "random", "os", "socket", "subprocess", "secrets", "threading", "asyncio"}


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_holds_one_idea_and_says_which(path: Path) -> None:
    tree = _tree(path)
    assert len(path.read_text().splitlines()) <= MODULE_LINES_MAX
    assert path.stem not in FORBIDDEN_NAMES
    assert ast.get_docstring(tree), "a module says what it is"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < FUNCTION_LINES_MAX, node.name


@pytest.mark.parametrize(
    "path", sorted((ROOT / "domain").rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT))
)
def test_the_domain_has_no_clock_and_no_dice(path: Path) -> None:
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            assert not WORLD & {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] not in WORLD
        if isinstance(node, ast.Attribute):
            assert (
                node.attr not in {"now", "utcnow", "uuid4", "today"}
                or not isinstance(node.value, ast.Name)
                or node.value.id not in {"datetime", "date", "uuid"}
            )


def test_every_event_and_command_has_a_contract_and_every_field_a_word() -> None:
    assert missing_words() == []
    assert author() == [], "python -m schemas.author was not run"
    assert registry().newest.keys() == {*FACTS, *COMMANDS, *MESSAGES}


def test_every_fact_has_a_step_and_every_reason_a_rule() -> None:
    assert STEPS.keys() == set(FACTS.values())
    assert RULES.keys() == set(Reason)
    assert list(Reason) == sorted(Reason), "reasons stand in the order of their precedence"


def test_every_state_says_what_may_follow() -> None:
    assert RESERVATION_STEPS.keys() == set(ReservationState)
    assert NODE_STEPS.keys() == set(NodeState)


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_lock_files_name_no_host() -> None:
    for lock in ROOT.glob("*.lock"):
        assert "://" not in lock.read_text(), lock

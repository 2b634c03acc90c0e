"""The arrows between the folders, and between the pages."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAY_IMPORT = {
    "domain": {"domain"},
    "projections": {"projections", "domain"},
    "solvers": {"solvers", "domain", "ortools", "numpy", "numba"},
    "schemas": {"schemas", "domain", "fastavro"},
}
KNOW_OTHERS = {"cli", "wiring"}
"""Connectors that may know the others: the command line and the composition root."""

PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if ".venv" not in path.parts
)
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")


def imported(path: Path) -> Iterator[str]:
    """The top-level packages that a module imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the whole path"
            yield (node.module or "").split(".")[0]


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_folder_imports_what_it_may_and_nothing_else(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        foreign = set(imported(path)) - MAY_IMPORT[package] - sys.stdlib_module_names
        assert not foreign, path


def test_every_connector_is_kept_from_the_others() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (kept,) = (c["modules"] for c in contracts["contracts"] if c["type"] == "independence")
    folders = {p.parent.name for p in (ROOT / "connectors").glob("*/__init__.py")} - KNOW_OTHERS
    assert {f"connectors.{folder}" for folder in folders} == set(kept)


def test_every_package_says_in_a_sentence_what_it_is() -> None:
    for package in (*MAY_IMPORT, "connectors"):
        for path in (ROOT / package).rglob("__init__.py"):
            words = ast.get_docstring(ast.parse(path.read_text()))
            assert words, path
            assert words.splitlines()[0].endswith((".", ":")), path


def test_every_lint_exception_has_its_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    (ignored,) = re.findall(r"^ignore = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    for line in ignored.splitlines():
        assert re.fullmatch(r'    "[A-Z]+\d*",\s+# .{5,}', line), line


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", DECISIONS, ids=lambda p: p.stem)
def test_a_decision_says_why_and_what_else_there_was(page: Path) -> None:
    text = page.read_text()
    assert text.startswith(f"# {page.stem[:4]}: ")
    heads = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert heads == ["Context", "Decision", "Consequences", "Alternatives"]


def test_decisions_are_numbered_without_gaps() -> None:
    assert [int(page.stem[:4]) for page in DECISIONS] == list(range(1, len(DECISIONS) + 1))


def test_paths_that_contributing_names_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for path in re.findall(
        r"`((?:domain|projections|solvers|schemas|connectors|tests|docs)/[^`]*)`", text
    ):
        if not re.search(r"[A-Z]{2,}|X", path):
            assert (ROOT / path).exists(), path

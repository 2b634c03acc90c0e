"""Named queries, as SQL in files: each with its name and one sentence on top."""

from functools import cache
from pathlib import Path

SQL = Path(__file__).parent / "sql"
_MARK = "-- name: "


@cache
def queries(file: str = "queries.sql") -> dict[str, str]:
    """The queries of a file, by name."""
    found: dict[str, str] = {}
    for part in (SQL / file).read_text().split(_MARK)[1:]:
        name, text = part.split("\n", 1)
        assert text.startswith("-- "), f"{name} says in a sentence what it does"
        found[name.strip()] = text.strip()
    return found

"""The reference pages say what the code does today."""

from connectors.cli.app import app
from connectors.cli.reference import DOCS, pages


def test_the_reference_pages_are_current() -> None:
    for name, text in pages(app).items():
        written = (DOCS / name).read_text()
        assert written == text, f"docs/{name}: run python -m connectors.cli.reference"

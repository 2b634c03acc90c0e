"""Odd words about money end in a sentence and a status, before anything is asked of a service."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from connectors.cli.app import app


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("charges close team-b --month 2026-13", 2),
        ("charges close team-b --month 2026-01 --zone Mars/Base", 2),
        ("charges close team-b", 2),
        ("charges export --format xml --out FOLDER/x", 2),
        ("charges export --grain week --out FOLDER/x", 2),
        ("charges show --data FOLDER/nothing", 1),
        ("charges statement a --out FOLDER/x --data FOLDER/nothing", 1),
        ("charges reconcile --data FOLDER/nothing", 1),
        ("charges invoices --tolerance much --data FOLDER/nothing", 2),
        ("charges invoices --tolerance -1 --data FOLDER/nothing", 2),
        (
            "charges import-invoice FOLDER/no.csv --provider p --invoice i --pool P --from x --to y",
            1,
        ),
        ("price publish x --rate overflow", 2),
        ("price publish x --file FOLDER/none.yaml", 1),
    ],
)
def test_odd_words_about_money_end_in_a_sentence(tmp_path: Path, words: str, status: int) -> None:
    line = words.replace("FOLDER", str(tmp_path)).split()
    done = CliRunner().invoke(app, ["--data", str(tmp_path / "nothing"), *line])
    assert done.exit_code == status, done.output
    assert done.output.strip()
    assert "Traceback" not in done.output

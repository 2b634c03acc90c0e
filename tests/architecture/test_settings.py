"""Every setting that the code reads from its environment stands in docs/settings.md."""

import re
from pathlib import Path

from connectors.kafka import settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "settings.md").read_text()
OURS = re.compile(r"[\"$](?:\{)?((?:GPULEDGER|KAFKA)_[A-Z_]+|XDG_CACHE_HOME)\b")
INWARD = {"GPULEDGER_SUPERVISOR"}
"""What a process of ours tells its children."""


def test_every_setting_is_told() -> None:
    files = [
        *(path for top in ("connectors", "benchmarks") for path in (ROOT / top).rglob("*.py")),
        ROOT / "docker-compose.yml",
    ]
    read = {name for path in files for name in OURS.findall(path.read_text())} - INWARD
    read |= {f"KAFKA_{name.upper()}" for name in settings.PASSED_THROUGH}
    untold = {name for name in read if f"`{name}`" not in PAGE}
    assert not untold

"""The promises hold in seeded runs of the whole service; a failing seed names itself."""

import pytest

from tests.simulation.service import run


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        count = metafunc.config.getoption("--simulation-seeds")
        metafunc.parametrize("seed", range(count))


def test_every_promise_holds_in_a_seeded_run(seed: int) -> None:
    assert run(seed) > 0

"""`plan certificate check`: a bound from its prices, by adding up, without a solver."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connectors.cli.console import REFUSED, fail, group, tell
from connectors.cli.solving import read

if TYPE_CHECKING:
    from solvers.planning.certificate import Certificate, Prices

plan, plan_verb = group("plan", "What the plan is, why it is so, and what it proves")
certificate, certificate_verb = group("certificate", "Prices that prove bounds")
plan.add_typer(certificate)


@certificate_verb("check")
def check(
    instances: Annotated[Path, typer.Argument(help="instances as JSON")],
    certificates: Annotated[Path, typer.Argument(help="what 'solve --certificates' wrote")],
) -> None:
    """Work out the bound that each certificate proves; exit status 1 for one that is none."""
    from solvers.planning.certificate import bound_of
    from solvers.planning.columns import columns_of

    given = {instance.name: instance for instance in read(instances)[0]}
    rows: list[dict[str, Any]] = []
    for name, told in _read(certificates):
        if name not in given:
            fail(REFUSED, f"{certificates}: {instances} has no instance {name!r}")
        try:
            bound = bound_of(columns_of(given[name]), told)
        except ValueError as error:
            fail(REFUSED, f"{certificates}, {name}: {error}")
            return
        priced = sum(len(line) for line in (*told.models.values(), *told.quotas.values()))
        rows.append({"instance": name, "bound": bound, "prices": priced})
    tell(rows, rows, ("instance", "bound", "prices"), "Bounds")


def _read(file: Path) -> list[tuple[str, "Certificate"]]:
    from solvers.planning.certificate import Certificate

    try:
        return [
            (
                str(each["name"]),
                Certificate(
                    _whole(each["scale"]), _prices(each["models"]), _prices(each["quotas"])
                ),
            )
            for each in json.loads(file.read_text(encoding="utf-8"))
        ]
    except OSError as error:
        fail(REFUSED, f"{file}: {error.strerror}")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        fail(REFUSED, f"{file} is no file of certificates: {error}")
    raise AssertionError("every fault ends the command")


def _prices(content: dict[str, list[list[int]]]) -> "Prices":
    return {
        name: tuple((_whole(at), _whole(price)) for at, price in line)
        for name, line in content.items()
    }


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 62:
        raise ValueError(f"{value!r} is no whole number of 63 bits")
    return value

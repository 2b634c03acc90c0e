"""Told stories as JUnit XML, which every build server reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a story went; a problem when it went another way than told."""

    file: Path
    seconds: float
    problem: str = ""


def junit(stage: str, verdicts: Sequence[Verdict]) -> str:
    """One suite, with a case for each story."""
    suite = Element(
        "testsuite",
        name=f"gpuledger scenarios on {stage}",
        tests=str(len(verdicts)),
        failures=str(sum(bool(verdict.problem) for verdict in verdicts)),
        errors="0",
        time=f"{sum(verdict.seconds for verdict in verdicts):.3f}",
    )
    for verdict in verdicts:
        case = SubElement(
            suite,
            "testcase",
            classname=f"scenarios.{stage}",
            name=verdict.file.stem,
            file=str(verdict.file),
            time=f"{verdict.seconds:.3f}",
        )
        if verdict.problem:
            SubElement(case, "failure", message=verdict.problem).text = verdict.problem
    indent(suite)
    return tostring(suite, encoding="unicode", xml_declaration=True) + "\n"

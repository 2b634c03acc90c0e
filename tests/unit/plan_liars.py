"""Solvers that misbehave, for the tests of the child process."""

import os
import time

from domain.snapshot import PlanAnswer, PlanProblem
from solvers.repacking import repack


def hangs(problem: PlanProblem) -> PlanAnswer:
    time.sleep(600)
    return repack(problem)


def crashes(problem: PlanProblem) -> PlanAnswer:
    os._exit(11)


def eats_memory(problem: PlanProblem) -> PlanAnswer:
    bytearray(64 << 30)
    return repack(problem)


def lies(problem: PlanProblem) -> PlanAnswer:
    """Everyone on the same units, called optimal."""
    ask = problem.waiting[0]
    pieces = tuple(problem.movable[0].at)
    return PlanAnswer(admitted={ask.id: pieces}, is_proven=True, evidence={"status": "OPTIMAL"})


def mumbles(problem: PlanProblem) -> PlanAnswer:
    """No units where units should be."""
    ask = problem.waiting[0]
    return PlanAnswer(admitted={ask.id: None}, is_proven=True)  # type: ignore[dict-item]


def says_nothing(problem: PlanProblem) -> PlanAnswer:
    """What waits is neither admitted nor refused."""
    return PlanAnswer(is_proven=True)


def refuses(problem: PlanProblem) -> PlanAnswer:
    """Everything that waits is refused, and that is called optimal and proven."""
    waiting = tuple(ask.id for ask in problem.waiting)
    return PlanAnswer(refused=waiting, is_proven=True, evidence={"status": "OPTIMAL"})

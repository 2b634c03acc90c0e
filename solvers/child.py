"""Solving in a process of its own, with limits of memory and time.

Whatever happens there, the answer here is a checked plan, or a name for what went wrong.
"""

import multiprocessing as mp
import os
import pickle
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from domain.snapshot import PlanAnswer, PlanProblem
from solvers.checker import answer_faults

MEMORY_BYTES_MAX = 2 << 30
WALL_SECONDS_MAX = 60.0
NICENESS = 10

T = TypeVar("T")
Solve = Callable[[PlanProblem], PlanAnswer]


def steps_in_child(
    work: Callable[[Any], Iterator[T]],
    task: object,
    *,
    wall_seconds: float = WALL_SECONDS_MAX,
    memory_bytes: int = MEMORY_BYTES_MAX,
) -> tuple[str, list[T]]:
    """What a generator yields in a child, and its end: `ended`, `timeout`, `crashed`, `unreadable`.

    Whatever was yielded before a bad end is there. `work` and `task` are picklable.
    """
    context = mp.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(sender, pickle.dumps((work, task)), memory_bytes))
    child.start()
    sender.close()
    found: list[T] = []
    until = time.monotonic() + wall_seconds
    try:
        while receiver.poll(max(0.0, until - time.monotonic())):
            told = pickle.loads(receiver.recv_bytes())  # noqa: S301 - from our own child
            if told is None:
                return "ended", found
            found.append(told[0])
    except (EOFError, OSError):
        return "crashed", found
    except Exception:  # noqa: BLE001 - whatever a broken child sends is only unreadable
        return "unreadable", found
    else:
        return "timeout", found
    finally:
        child.kill()
        child.join()
        receiver.close()


def solve_in_child(
    problem: PlanProblem,
    solve: Solve | None = None,
    *,
    wall_seconds: float = WALL_SECONDS_MAX,
    memory_bytes: int = MEMORY_BYTES_MAX,
) -> PlanAnswer:
    """A checked answer; without one, everything that waits was not found in time.

    A refusal is proven only when a second configuration in a second child, checked as well, is
    optimal and admits no better. The evidence's `outcome` is `solved`, `timeout`, `crashed`,
    `broken` (the checker found a fault: a status is never trusted) or `unreadable`.
    """
    answer = _checked(problem, solve or _search, wall_seconds, memory_bytes)
    answer = replace(answer, is_proven=False)
    if not answer.refused or answer.evidence.get("status") != "OPTIMAL":
        return answer
    again = _checked(problem, _search_again, wall_seconds, memory_bytes)
    from solvers.repacking import confirmed

    return confirmed(problem, answer, again)


def _checked(
    problem: PlanProblem, solve: Solve, wall_seconds: float, memory_bytes: int
) -> PlanAnswer:
    """What one child answers, or a name for what went wrong with it."""
    outcome, told = steps_in_child(
        _solved, (solve, problem), wall_seconds=wall_seconds, memory_bytes=memory_bytes
    )
    if outcome != "ended":
        return _nothing(problem, outcome)
    answer = told[-1]
    try:
        found = answer_faults(problem, answer)
    except Exception as error:  # noqa: BLE001 - an answer may be anything
        return _nothing(problem, "unreadable", error=type(error).__name__)
    if found:
        return _nothing(problem, "broken", fault=found[0])
    return replace(answer, evidence={**answer.evidence, "outcome": "solved"})


def _nothing(problem: PlanProblem, outcome: str, **more: str) -> PlanAnswer:
    waiting = tuple(ask.id for ask in problem.waiting)
    return PlanAnswer(refused=waiting, evidence={"outcome": outcome, **more})


def _search(problem: PlanProblem) -> PlanAnswer:
    from solvers.repacking import search

    return search(problem)


def _search_again(problem: PlanProblem) -> PlanAnswer:
    from solvers.repacking import search_again

    return search_again(problem)


def _solved(given: tuple[Solve, PlanProblem]) -> Iterator[PlanAnswer]:
    solve, problem = given
    yield solve(problem)


def _child(sender: Connection, given: bytes, memory_bytes: int) -> None:
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    work, task = pickle.loads(given)  # noqa: S301 - from our own parent
    for step in work(task):
        sender.send_bytes(pickle.dumps((step,)))
    sender.send_bytes(pickle.dumps(None))
    sender.close()

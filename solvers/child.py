"""Solving in a process of its own, with limits of memory and time.

Whatever happens there, the answer here is a checked plan, or a name for what went wrong.
"""

import multiprocessing as mp
import os
import pickle
import resource
from collections.abc import Callable
from multiprocessing.connection import Connection

from domain.snapshot import PlanAnswer, PlanProblem
from solvers.checker import answer_faults

MEMORY_BYTES_MAX = 2 << 30
WALL_SECONDS_MAX = 60.0
NICENESS = 10

Solve = Callable[[PlanProblem], PlanAnswer]


def solve_in_child(
    problem: PlanProblem,
    solve: Solve | None = None,
    *,
    wall_seconds: float = WALL_SECONDS_MAX,
    memory_bytes: int = MEMORY_BYTES_MAX,
) -> PlanAnswer:
    """A checked answer; without one, everything that waits was not found in time.

    The evidence's `outcome` is `solved`, `timeout`, `crashed`, `broken` (the checker found a
    fault: a status is never trusted) or `unreadable`.
    """
    context = mp.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(
        target=_child, args=(sender, pickle.dumps(problem), solve, memory_bytes)
    )
    child.start()
    sender.close()
    try:
        if not receiver.poll(wall_seconds):
            return _nothing(problem, "timeout")
        told = receiver.recv_bytes()
    except (EOFError, OSError):
        return _nothing(problem, "crashed")
    finally:
        child.kill()
        child.join()
        receiver.close()
    try:
        answer: PlanAnswer = pickle.loads(told)  # noqa: S301 - from our own child
        found = answer_faults(problem, answer)
    except Exception as error:  # noqa: BLE001 - whatever a broken child sends is only unreadable
        return _nothing(problem, "unreadable", error=type(error).__name__)
    if found:
        return _nothing(problem, "broken", fault=found[0])
    answer.evidence["outcome"] = "solved"
    return answer


def _nothing(problem: PlanProblem, outcome: str, **more: str) -> PlanAnswer:
    waiting = tuple(ask.id for ask in problem.waiting)
    return PlanAnswer(refused=waiting, evidence={"outcome": outcome, **more})


def _child(sender: Connection, problem: bytes, solve: Solve | None, memory_bytes: int) -> None:
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    if solve is None:
        from solvers.repacking import repack

        solve = repack
    answer = solve(pickle.loads(problem))  # noqa: S301 - from our own parent
    sender.send_bytes(pickle.dumps(answer))
    sender.close()

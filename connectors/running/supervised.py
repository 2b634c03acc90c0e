"""A role ends with the process that supervises it, however that one ends."""

import ctypes
import os
import signal

SUPERVISOR = "GPULEDGER_SUPERVISOR"
"""The environment variable that names the supervisor's process to its roles."""

_PR_SET_PDEATHSIG = 1
"""From prctl(2): the signal that this process gets when its parent dies."""


def end_with_supervisor() -> None:
    """Be told to stop when the supervisor dies, be it by kill -9.

    Without this a killed `dev` would leave roles that hold its port and write to its database.
    A role that was started by hand has no supervisor, and lives on.
    """
    supervisor = os.environ.get(SUPERVISOR)
    if supervisor is None:
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(supervisor):
        raise SystemExit(f"the supervisor {supervisor} is gone already")

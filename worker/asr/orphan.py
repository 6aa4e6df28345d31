"""Called inside a child process: makes sure that it dies with the process that started it."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_owner(owner_pid: int) -> None:
    """Set here and not between fork and exec, where Python code may deadlock once the owner has threads."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != owner_pid:
        # The owner was gone before the kernel knew that we care.
        os._exit(0)

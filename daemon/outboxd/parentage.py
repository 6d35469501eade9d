"""Ties a process to the supervisor that started it, before anything heavy is imported."""

import ctypes
import faulthandler
import os
import signal
import sys
from contextlib import suppress

from outboxd.core.exit_codes import ExitCode

OOM_SCORE_ADDED = 300
"""Of a scale of 1000: out of memory, the kernel takes a child rather than the supervisor, which
would start it again. Everybody may raise the score of his own process (proc(5))."""

_PR_SET_PDEATHSIG = 1


def tie_to(supervisor: int) -> None:
    """Hear of the supervisor's end, leave its signals to it, and dump stacks when asked.

    Ends the process if the supervisor is gone already. Nothing is installed for SIGTERM, the death
    signal: that is the caller's, and to be done before.
    """
    if sys.platform == "linux":
        # The kernel's copy of what the socket's end says: the supervisor is gone, so drain.
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        _be_taken_first()
    # Ctrl-C in a terminal reaches the whole group, and so does its hangup; only the supervisor
    # decides what they mean.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    if os.getppid() != supervisor:  # it died before the death signal was asked for
        sys.exit(ExitCode.ORPHANED)


def _be_taken_first() -> None:
    # Without /proc, or where it is read-only, the kernel decides by size alone.
    with suppress(OSError, ValueError), open("/proc/self/oom_score_adj", "r+") as score:
        wanted = min(1000, int(score.read()) + OOM_SCORE_ADDED)
        score.seek(0)
        score.write(str(wanted))

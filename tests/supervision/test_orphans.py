"""Who is a zombie, of real processes."""

import os
import signal
import subprocess
import sys
import time

import pytest

from outboxd.supervision.orphans import zombies_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def until_zombie(pid: int) -> None:
    deadline = time.monotonic() + 10
    while pid not in zombies_of(os.getpid()):
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_child_is_a_zombie_from_its_end_until_it_is_waited_for() -> None:
    child = subprocess.Popen(["sleep", "600"])
    assert child.pid not in zombies_of(os.getpid())

    child.send_signal(signal.SIGKILL)
    until_zombie(child.pid)

    child.wait()
    assert child.pid not in zombies_of(os.getpid())

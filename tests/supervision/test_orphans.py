"""Who is a zombie, of real processes; and a kernel that does not say."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest

from outboxd.supervision import orphans
from outboxd.supervision.orphans import bury_orphans, zombies_of

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


async def test_a_kernel_that_lists_no_children_costs_no_daemon(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(orphans, "os", SimpleNamespace(getpid=lambda: 1))
    monkeypatch.setattr(orphans, "PROC", tmp_path)
    monkeypatch.setattr(orphans, "LOOK_SECONDS", 0)

    with anyio.fail_after(5):
        await bury_orphans()

    assert [record.message for record in caplog.records] == ["orphans cannot be seen here"]

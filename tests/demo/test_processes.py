"""Who is a supervisor's child, and the killing of exactly those."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from outboxd.demo.killer import Killer, Kills, killing
from outboxd.demo.processes import Child, _from_ps, children_of, kill

SLEEP = "import time; time.sleep(60)"


@contextmanager
def child_called(role: str, module: str = "outboxd.child") -> Iterator[subprocess.Popen[bytes]]:
    """A process of ours whose arguments are those of a supervisor's child."""
    process = subprocess.Popen([sys.executable, "-c", SLEEP, "-m", module, role, "--fd", "3"])
    try:
        # The arguments are in /proc only some microseconds after the exec that Popen waits for.
        while role.encode() not in Path(f"/proc/{process.pid}/cmdline").read_bytes():
            time.sleep(0.001)
        yield process
    finally:
        process.kill()
        process.wait()


def test_children_are_found_by_parent_and_role() -> None:
    with child_called("relay") as relay, child_called("consumer:a/1") as pool:
        assert children_of(os.getpid()) == (
            Child(pool.pid, "consumer:a/1"),
            Child(relay.pid, "relay"),
        )


def test_other_processes_of_the_same_parent_are_no_children() -> None:
    with child_called("relay", module="something.else"):
        assert children_of(os.getpid()) == ()


def test_children_of_other_parents_are_no_children() -> None:
    with child_called("relay") as relay:
        assert children_of(relay.pid) == ()


def test_without_proc_the_children_are_found_through_ps() -> None:
    with child_called("relay") as relay:
        parents = {pid: parent for pid, parent, _ in _from_ps()}

        assert parents[relay.pid] == os.getpid()


def test_a_killed_child_dies_by_sigkill() -> None:
    with child_called("relay") as relay:
        assert kill(Child(relay.pid, "relay"), os.getpid()) is True
        assert relay.wait() == -signal.SIGKILL


def test_a_child_that_is_gone_is_not_killed_again() -> None:
    with child_called("relay") as relay:
        relay.kill()
        relay.wait()

        assert kill(Child(relay.pid, "relay"), os.getpid()) is False


def test_a_stranger_who_got_the_pid_is_not_killed() -> None:
    with child_called("relay", module="something.else") as stranger:
        assert kill(Child(stranger.pid, "relay"), os.getpid()) is False
        assert stranger.poll() is None


def test_the_killer_goes_on_until_every_role_had_its_turn() -> None:
    with (
        child_called("relay"),
        child_called("extender"),
        child_called("consumer:a/1"),
        killing(os.getpid(), every_seconds=0.01, seed=1) as killer,
    ):
        assert killer is not None
        killer.work_done()
        killer.join(timeout=30)

        assert killer.satisfied
        assert killer.kills == Kills({"relay": 1, "extender": 1, "consumer:a/1": 1})
        assert killer.kills.total == 3


def test_when_the_work_is_done_the_killer_tells_whose_turn_is_awaited() -> None:
    with child_called("relay"), child_called("extender"), child_called("consumer:a/1"):
        killer = Killer(os.getpid(), every_seconds=1, seed=1)
        killer.kill_one()
        assert killer.kills.awaited == ()

        killer.work_done()

        (killed,) = killer.kills.by_role
        assert {killed, *killer.kills.awaited} == {"relay", "extender", "consumer:a/1"}
        assert killed not in killer.kills.awaited


def test_the_killer_kills_again_while_there_is_work() -> None:
    with killing(os.getpid(), every_seconds=0.01, seed=1) as killer:
        assert killer is not None
        deadline = time.monotonic() + 30
        for _ in range(3):
            with child_called("relay") as relay:
                assert relay.wait(deadline - time.monotonic()) == -signal.SIGKILL

        assert killer.spared == set()
        assert not killer.satisfied


def test_nobody_is_killed_when_nobody_asked() -> None:
    with killing(os.getpid(), every_seconds=None, seed=1) as killer:
        assert killer is None


@pytest.mark.parametrize("seed", range(3))
def test_the_same_seed_kills_in_the_same_order(seed: int) -> None:
    orders = []
    for _ in range(2):
        with child_called("relay"), child_called("extender"), child_called("consumer:a/1"):
            with killing(os.getpid(), every_seconds=0.01, seed=seed) as killer:
                assert killer is not None
                killer.work_done()
                killer.join(timeout=30)
            orders.append(list(killer.kills.by_role))

    assert orders[0] == orders[1]

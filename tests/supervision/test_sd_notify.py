import select
import socket
import time
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from outboxd.supervision.sd_notify import Notifier


@pytest.fixture
def manager(tmp_path: Path) -> socket.socket:
    """A service manager's end of the notify socket."""
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    receiver.bind(str(tmp_path / "notify"))
    receiver.settimeout(5)
    return receiver


def told(manager: socket.socket) -> str:
    return manager.recv(1024).decode()


def test_readiness_status_and_stopping_are_told(manager: socket.socket) -> None:
    with manager:
        notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname()})

        notifier.status("2/3 children\nready")
        notifier.ready()
        notifier.stopping()

        assert told(manager) == "STATUS=2/3 children ready"
        assert told(manager).splitlines()[0] == "READY=1"
        assert told(manager).splitlines()[0] == "STOPPING=1"


@pytest.mark.parametrize("character", ["x", "ü"])
def test_a_status_is_never_so_long_that_readiness_is_lost_with_it(
    manager: socket.socket, character: str
) -> None:
    """systemd ignores a datagram of more than PIPE_BUF bytes."""
    with manager:
        Notifier({"NOTIFY_SOCKET": manager.getsockname()}).ready(f"problems: {character * 9000}")

        datagram = manager.recv(20_000)
    assert len(datagram) <= select.PIPE_BUF
    assert datagram.decode().startswith(f"READY=1\nSTATUS=problems: {character}")


def test_an_abstract_socket_is_understood() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind("\0outboxd-test-notify")
        receiver.settimeout(5)

        Notifier({"NOTIFY_SOCKET": "@outboxd-test-notify"}).stopping()

        assert told(receiver).startswith("STOPPING=1")


async def test_the_watchdog_is_fed_several_times_per_interval(manager: socket.socket) -> None:
    with manager:
        notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "20000"})
        with anyio.move_on_after(0.1):
            await notifier.feed_watchdog(lambda: [])

        assert [told(manager) for _ in range(3)] == ["WATCHDOG=1"] * 3


async def test_the_watchdog_starves_while_something_is_broken_and_the_log_says_what(
    manager: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    problems = [["relay is long overdue"], ["relay is long overdue"], [], []]
    with manager:
        notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "20000"})
        with pytest.raises(IndexError):
            await notifier.feed_watchdog(lambda: problems.pop(0))

        assert [told(manager) for _ in range(2)] == ["WATCHDOG=1"] * 2
        manager.setblocking(False)
        with pytest.raises(BlockingIOError):
            told(manager)
    assert [vars(record)["problems"] for record in caplog.records] == [["relay is long overdue"]]


def test_a_reload_tells_its_moment_in_the_same_datagram(manager: socket.socket) -> None:
    with manager:
        before = time.monotonic_ns() // 1000
        Notifier({"NOTIFY_SOCKET": manager.getsockname()}).reloading()

        first, second, _ = told(manager).splitlines()
        assert first == "RELOADING=1"
        assert before <= int(second.removeprefix("MONOTONIC_USEC=")) <= time.monotonic_ns() // 1000


async def test_more_time_is_asked_for_as_long_as_it_is_wanted(
    manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outboxd.supervision.sd_notify.EXTEND_EVERY_SECONDS", 0.01)
    wanted = [True, True, False]
    with manager:
        notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname()})
        await notifier.extend_timeout(lambda: wanted.pop(0))

        assert [told(manager) for _ in range(2)] == ["EXTEND_TIMEOUT_USEC=10000000"] * 2


@pytest.mark.parametrize(
    "environ",
    [{}, {"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "soon"}],
    ids=["none", "of another process", "no number"],
)
async def test_a_watchdog_that_is_not_ours_is_not_fed(environ: dict[str, str]) -> None:
    with anyio.fail_after(5):
        await Notifier(environ).feed_watchdog(lambda: [])


async def test_what_a_manager_had_no_room_for_is_sent_again_in_its_order(
    manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outboxd.supervision.sd_notify.SEND_AGAIN_SECONDS", 0.001)
    with manager, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as others:
        others.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                others.sendto(b"WATCHDOG=1", manager.getsockname())
        notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname()})
        notifier.reloading()
        notifier.ready()

        heard: list[str] = []

        async def hear() -> None:
            while len(heard) < 2:
                word = await anyio.to_thread.run_sync(told, manager)
                heard.extend([word.partition("=")[0]] if word != "WATCHDOG=1" else [])
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(notifier.send_again)
            tasks.start_soon(hear)
    assert heard == ["RELOADING", "READY"]


def test_a_manager_that_is_gone_is_no_error(tmp_path: Path) -> None:
    Notifier({"NOTIFY_SOCKET": str(tmp_path / "nobody")}).ready()
    Notifier({}).ready()

"""Orders over the control socket: one line, one answer, and nothing that a peer does harms."""

import json
import os
import socket
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from outboxd.core.errors import AddressInUse, SettingsError
from outboxd.supervision import control as module
from outboxd.supervision.control import serve_control
from outboxd.supervision.control_socket import ControlSocket
from outboxd.supervision.pauses import UnknownQueue
from outboxd.supervision.replacements import UnknownChild


class Daemon:
    """Remembers its orders, and knows one queue."""

    def __init__(self) -> None:
        self.orders: list[tuple[str, str]] = []

    def pause(self, queue: str) -> None:
        if queue == "bug":
            raise KeyError(queue)
        if queue != "orders":
            raise UnknownQueue(f"no {queue}")
        self.orders.append(("pause", queue))

    def resume(self, queue: str) -> None:
        self.orders.append(("resume", queue))

    async def reload(self, *, everything: bool) -> str:
        self.orders.append(("reload", "all" if everything else ""))
        await anyio.sleep(2 * module.CONNECTION_SECONDS if module.CONNECTION_SECONDS < 1 else 0)
        return "reloaded: no child is concerned"

    async def restart(self, child: str) -> str:
        raise UnknownChild(f"no {child}")

    def dump(self) -> str:
        self.orders.append(("dump", ""))
        return "supervisor, relay"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "control.sock"


@pytest.fixture
async def daemon(path: Path) -> AsyncIterator[Daemon]:
    daemon = Daemon()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve_control, ControlSocket(str(path)), daemon)
        yield daemon
        tasks.cancel_scope.cancel()


async def said(stream: SocketStream) -> bytes:
    """All that the daemon says until it hangs up."""
    answer = b""
    with anyio.fail_after(10):
        try:
            while True:
                answer += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return answer


async def asked(path: Path, line: bytes) -> dict[str, object]:
    async with await anyio.connect_unix(path) as stream:
        await stream.send(line)
        answer = await said(stream)
    assert answer.endswith(b"\n")
    decoded: dict[str, object] = json.loads(answer)
    return decoded


async def test_orders_are_carried_out(path: Path, daemon: Daemon) -> None:
    assert await asked(path, b'{"do":"pause","queue":"orders"}\n') == {"ok": True}
    assert await asked(path, b'{"do":"resume","queue":"orders"}\n') == {"ok": True}

    assert daemon.orders == [("pause", "orders"), ("resume", "orders")]


async def test_an_order_that_means_something_is_answered_with_what_was_done(
    path: Path, daemon: Daemon
) -> None:
    done = {"ok": True, "done": "reloaded: no child is concerned"}
    assert await asked(path, b'{"do":"reload"}\n') == done
    assert await asked(path, b'{"do":"reload","everything":true}\n') == done
    assert await asked(path, b'{"do":"dump"}\n') == {"ok": True, "done": "supervisor, relay"}

    assert daemon.orders == [("reload", ""), ("reload", "all"), ("dump", "")]


async def test_an_order_may_take_longer_than_its_telling(
    path: Path, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CONNECTION_SECONDS", 0.2)

    assert (await asked(path, b'{"do":"reload"}\n'))["ok"] is True


@pytest.mark.parametrize(
    ("line", "part"),
    [
        (b'{"do":"pause","queue":"mails"}\n', "no mails"),
        (b'{"do":"stop","queue":"orders"}\n', "Invalid value 'stop'"),
        (b'{"do":"restart","child":"mails"}\n', "no mails"),
        (b'{"do":"reload","everything":1}\n', "Expected `bool`"),
        (b'{"do":"pause"}\n', "missing required field `queue`"),
        (b'{"do":"pause","queue":"orders","now":1}\n', "unknown field `now`"),
        (b"pause orders\n", "malformed"),
        (b"\xff\n", "malformed"),
        (b"\n", "truncated"),
        (b'{"do":"pause","queue":"bug"}\n', "a bug in outboxd"),
        (b"x" * 5000 + b"\n", "longer than 4096 bytes"),
        (b"x" * 5000, "longer than 4096 bytes"),
    ],
)
async def test_what_cannot_be_done_is_answered_with_a_reason(
    path: Path, daemon: Daemon, line: bytes, part: str
) -> None:
    answer = await asked(path, line)

    assert answer["ok"] is False
    assert part in str(answer["error"])
    assert daemon.orders == []
    assert await asked(path, b'{"do":"pause","queue":"orders"}\n') == {"ok": True}


@pytest.mark.parametrize("begun", [b"", b'{"do":"pa'])
async def test_a_peer_that_goes_away_midway_orders_nothing(
    path: Path, daemon: Daemon, begun: bytes
) -> None:
    async with await anyio.connect_unix(path) as stream:
        if begun:
            await stream.send(begun)

    assert await asked(path, b'{"do":"resume","queue":"orders"}\n') == {"ok": True}
    assert daemon.orders == [("resume", "orders")]


async def test_a_peer_that_does_not_read_its_answer_is_obeyed(path: Path, daemon: Daemon) -> None:
    async with await anyio.connect_unix(path) as stream:
        await stream.send(b'{"do":"pause","queue":"orders"}\n')

    assert await asked(path, b'{"do":"resume","queue":"orders"}\n') == {"ok": True}
    assert daemon.orders == [("pause", "orders"), ("resume", "orders")]


async def test_silent_peers_keep_nobody_else_waiting(path: Path, daemon: Daemon) -> None:
    silent = [await anyio.connect_unix(path) for _ in range(module.MAX_CONNECTIONS - 2)]

    with anyio.fail_after(module.CONNECTION_SECONDS / 2):
        assert await asked(path, b'{"do":"pause","queue":"orders"}\n') == {"ok": True}
    for stream in silent:
        await stream.aclose()


async def test_orders_that_take_long_keep_no_other_from_being_heard(
    path: Path, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, all_wait = anyio.Event(), anyio.Event()
    waiting: list[str] = []

    async def takes_long(child: str) -> str:
        waiting.append(child)
        if len(waiting) == module.MAX_CONNECTIONS:
            all_wait.set()
        await done.wait()
        return child

    monkeypatch.setattr(daemon, "restart", takes_long)
    async with anyio.create_task_group() as tasks:
        for _ in range(module.MAX_CONNECTIONS):
            tasks.start_soon(asked, path, b'{"do":"restart","child":"relay"}\n')
        await all_wait.wait()
        with anyio.fail_after(module.CONNECTION_SECONDS):
            assert await asked(path, b'{"do":"pause","queue":"orders"}\n') == {"ok": True}
        done.set()


async def test_a_silent_peer_is_hung_up_on_and_makes_room(
    path: Path, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CONNECTION_SECONDS", 0.1)
    silent = [await anyio.connect_unix(path) for _ in range(module.MAX_CONNECTIONS + 5)]

    assert await asked(path, b'{"do":"pause","queue":"orders"}\n') == {"ok": True}
    for stream in silent:
        assert await said(stream) == b""
        await stream.aclose()


def test_only_this_user_reaches_it(path: Path) -> None:
    control = ControlSocket(str(path))

    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    control.close()
    control.close()
    assert not path.exists()


def test_the_socket_of_a_dead_daemon_is_replaced(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))

    control = ControlSocket(str(path))

    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(path))
    control.close()


def test_the_socket_of_a_living_daemon_is_left_alone(path: Path) -> None:
    living = ControlSocket(str(path))

    with pytest.raises(AddressInUse, match="another outboxd"):
        ControlSocket(str(path))

    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(path))
    living.close()
    ControlSocket(str(path)).close()


def a_file(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.write_text("precious")


def open_to_others(path: Path) -> None:
    path.parent.mkdir()
    path.parent.chmod(0o755)


def no_parent(path: Path) -> None:
    path.parent.parent.rmdir()


def a_linked_lock(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.with_name("control.sock.lock").symlink_to(path.parent / "elsewhere")


@pytest.mark.parametrize(
    ("stage", "problem"),
    [
        (a_file, "exists and is no socket"),
        (open_to_others, "others can enter"),
        (no_parent, "No such file or directory"),
        (a_linked_lock, "symbolic links"),
    ],
)
def test_a_place_that_will_not_do_is_refused_and_left_as_it_is(
    path: Path, stage: Callable[[Path], None], problem: str
) -> None:
    stage(path)
    before = path.read_text() if path.exists() else None

    with pytest.raises(SettingsError, match=problem) as refusal:
        ControlSocket(str(path))

    assert "[supervisor] control_socket" in str(refusal.value)
    assert (path.read_text() if path.exists() else None) == before


def test_a_path_that_is_too_long_for_the_kernel_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)

    with pytest.raises(SettingsError, match="too long"):
        ControlSocket(os.fspath(tmp_path / ("x" * 110)))

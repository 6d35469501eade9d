"""Pause and resume find the running daemon, and say clearly when they cannot."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

from outboxd.cli import control as command
from outboxd.supervision.control import serve_control
from outboxd.supervision.control_socket import ControlSocket
from outboxd.supervision.pauses import UnknownQueue
from outboxd.supervision.replacements import UnknownChild
from tests.cli.conftest import Cli

CONFIG = """
[queues.orders]
[[queues.orders.handlers]]
event = "*"
handler = "shop:ship"
name = "shop.ship"
inbox = "off"

[supervisor]
"""


class Daemon:
    """Consumes `orders`, and knows whether that is paused."""

    paused = False

    def pause(self, queue: str) -> None:
        self._require(queue)
        self.paused = True

    def resume(self, queue: str) -> None:
        self._require(queue)
        self.paused = False

    async def reload(self, *, everything: bool) -> str:
        return f"reloaded, everything: {everything}"

    async def restart(self, child: str) -> str:
        if child != "relay":
            raise UnknownChild(f'there is no child "{child}"')
        return f"{child} restarted"

    def dump(self) -> str:
        return "supervisor, relay"

    def _require(self, queue: str) -> None:
        if queue != "orders":
            raise UnknownQueue(f'no pool of this daemon consumes the queue "{queue}"')


@pytest.fixture
def path(folder: Path) -> Path:
    """Where a daemon is configured to listen; whether one does is up to the test."""
    path = folder / "run" / "control.sock"
    (folder / "outboxd.toml").write_text(f'{CONFIG}control_socket = "{path}"\n')
    return path


@pytest.fixture
def daemon(path: Path) -> Iterator[Daemon]:
    daemon = Daemon()
    control = ControlSocket(str(path))
    with start_blocking_portal() as portal:
        serving = portal.start_task_soon(serve_control, control, daemon)
        yield daemon
        serving.cancel()


@contextmanager
def answering(path: Path, answer: bytes) -> Iterator[None]:
    """Somebody else on the socket, who answers one connection with the same bytes, always."""
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(path))
        server.listen()

        def serve() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(4096)
                peer.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join()


def test_a_queue_is_paused_and_resumed(cli: Cli, daemon: Daemon) -> None:
    assert cli("pause", "orders") == (0, "orders is paused\n", "")
    assert daemon.paused
    assert cli("resume", "orders") == (0, "orders is resumed\n", "")
    assert not daemon.paused


def test_what_a_daemon_says_it_has_done_is_printed(cli: Cli, daemon: Daemon) -> None:
    assert cli("reload") == (0, "reloaded, everything: False\n", "")
    assert cli("reload", "--all") == (0, "reloaded, everything: True\n", "")
    assert cli("restart", "relay") == (0, "relay restarted\n", "")
    assert cli("dump") == (0, "supervisor, relay\n", "")


def test_an_order_that_takes_long_says_what_it_waits_for(
    cli: Cli,
    daemon: Daemon,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The daemon here is at it for as long as nothing is told."""
    monkeypatch.setattr(command, "PATIENCE_SECONDS", 0.01)

    async def takes_long(child: str) -> str:
        waiting = "outboxd: waiting for processes"
        while not capsys.readouterr().err.startswith(waiting):  # noqa: ASYNC110  nobody tells
            await anyio.sleep(0.001)
        return f"{child} restarted"

    monkeypatch.setattr(daemon, "restart", takes_long)

    assert cli("restart", "relay") == (0, "relay restarted\n", "")


def test_a_child_that_is_not_there(cli: Cli, daemon: Daemon) -> None:
    assert cli("restart", "relays") == (1, "", 'outboxd: there is no child "relays"\n')


def test_a_daemon_that_ends_before_it_answers(cli: Cli, path: Path) -> None:
    with answering(path, b""):
        ran = cli("reload")

    assert ran == (1, "", f"outboxd: {path}: the daemon hung up without an answer; see its log\n")


def test_a_socket_that_is_named_needs_no_configuration(
    cli: Cli, daemon: Daemon, path: Path, folder: Path
) -> None:
    (folder / "outboxd.toml").unlink()

    assert cli("pause", "orders", "--socket", str(path)) == (0, "orders is paused\n", "")
    assert daemon.paused


def test_a_queue_that_the_daemon_does_not_consume(cli: Cli, daemon: Daemon) -> None:
    told = 'outboxd: no pool of this daemon consumes the queue "mails"\n'

    assert cli("pause", "mails") == (1, "", told)
    assert cli("resume", "mails") == (1, "", told)


def test_no_daemon_has_ever_listened(cli: Cli, path: Path) -> None:
    assert cli("pause", "orders") == (
        1,
        "",
        f"outboxd: no daemon listens on {path}; is it running?\n",
    )


def test_the_daemon_was_killed(cli: Cli, path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(os.fspath(path))

    assert cli("resume", "orders") == (
        1,
        "",
        f"outboxd: no daemon listens on {path}; is it running?\n",
    )


def test_a_socket_that_cannot_be(cli: Cli, folder: Path) -> None:
    long = "/tmp/" + "x" * 200

    assert cli("dump", "--socket", long) == (1, "", f"outboxd: {long}: AF_UNIX path too long\n")


def test_no_control_socket_is_configured(cli: Cli, folder: Path) -> None:
    (folder / "outboxd.toml").write_text(CONFIG)

    assert cli("pause", "orders") == (
        1,
        "",
        "outboxd: outboxd.toml: [supervisor] has no control_socket, so a daemon cannot be told "
        "anything; set one and restart the daemon\n",
    )


def test_a_relative_socket_is_refused_with_the_configuration(cli: Cli, folder: Path) -> None:
    (folder / "outboxd.toml").write_text(f'{CONFIG}control_socket = "run/control.sock"\n')

    assert cli("pause", "orders") == (
        78,
        "",
        "outboxd: outboxd.toml: [supervisor] control_socket: expected an absolute path of at most "
        '101 characters, found "run/control.sock"\n',
    )


def test_there_is_no_configuration_at_all(cli: Cli, folder: Path) -> None:
    ran = cli("pause", "orders")

    assert ran.code == 78
    assert "--config" in ran.err


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n", b'{"ok":"yes"}\n'])
def test_somebody_else_answers(cli: Cli, path: Path, answer: bytes) -> None:
    with answering(path, answer):
        ran = cli("pause", "orders")

    assert ran.code == 1
    assert ran.err.startswith(f"outboxd: {path}: no answer that makes sense: ")

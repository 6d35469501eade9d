"""How `pause`, `resume`, `reload`, `restart` and `dump` reach the running daemon."""

import argparse
import os
import socket
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outboxd.cli.arguments import add_config_argument
from outboxd.cli.long_work import told_when_slow
from outboxd.core.errors import OutboxdError
from outboxd.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from outboxd.supervision.orders import Answer, Order

ANSWER_SECONDS = 10.0

PATIENCE_SECONDS = 5.0
"""After that it is said why an order may take longer."""

WAITING = (
    "waiting for processes to finish what they have in hand; "
    "Ctrl-C ends this command and not what it has ordered"
)


class NoControl(OutboxdError):
    """The daemon cannot be told anything; the text says why, and what to do."""


class OrderRefused(OutboxdError):
    """The daemon did not do it; the text is its own."""


class _InsteadOfConfig(argparse.Action):
    """`--socket` makes the configuration unnecessary, and with it its variables and secrets."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        namespace.socket = values
        if "config" in namespace:
            del namespace.config


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The queue, and where the daemon listens, as `arguments.queue` and `arguments.socket`."""
    parser.add_argument("queue", metavar="QUEUE", help="a queue that the daemon consumes")
    add_socket_arguments(parser)


def add_socket_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the daemon listens, as `arguments.socket`."""
    add_config_argument(parser)
    parser.add_argument(
        "--socket",
        type=Path,
        action=_InsteadOfConfig,
        metavar="PATH",
        help="the daemon's control socket; no configuration is read then",
    )


def order(
    arguments: argparse.Namespace,
    message: "Order",
    done: str | None = None,
    *,
    seconds: float | None = ANSWER_SECONDS,
) -> int:
    """Have the daemon do it, and say what is `done`, in its own words unless they are given.

    It is waited for at most `seconds`; None waits for as long as it takes, which is for orders that
    take as long as handlers do. Raises NoControl or OrderRefused.
    """
    path = arguments.socket or _configured(arguments.config)
    with told_when_slow(WAITING, PATIENCE_SECONDS) if seconds is None else nullcontext():
        answer = _ask(path, message, seconds)
    if not answer.ok:
        raise OrderRefused(answer.error)
    print(answer.done if done is None else done)
    return ExitCode.OK


def _configured(config: Path) -> Path:
    from outboxd.adapters.configuration import load_settings

    path = load_settings(config, os.environ).supervisor.control_socket
    if path is None:
        raise NoControl(
            f"{config}: [supervisor] has no control_socket, so a daemon cannot be told anything; "
            "set one and restart the daemon"
        )
    return Path(path)


def _ask(path: Path, message: "Order", seconds: float | None) -> "Answer":
    from outboxd.supervision.orders import MAX_ANSWER_BYTES, read_answer, write_line

    line = _exchange(path, write_line(message), MAX_ANSWER_BYTES, seconds)
    if not line:
        raise NoControl(f"{path}: the daemon hung up without an answer; see its log")
    try:
        return read_answer(line)
    except ValueError as error:
        raise NoControl(f"{path}: no answer that makes sense: {error}") from error


def _exchange(path: Path, line: bytes, limit: int, seconds: float | None) -> bytes:
    """The line that comes back, empty if none does."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(ANSWER_SECONDS)
            connection.connect(os.fspath(path))
            connection.sendall(line)
            connection.settimeout(seconds)
            with connection.makefile("rb") as answer:
                return answer.readline(limit)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise NoControl(f"no daemon listens on {path}; is it running?") from error
    except PermissionError as error:
        raise NoControl(
            f"no permission for {path}; be the user that the daemon runs as, or root"
        ) from error
    except TimeoutError as error:
        patience = seconds or ANSWER_SECONDS
        raise NoControl(f"{path}: no answer within {patience:g} s; see the log") from error
    except (ConnectionResetError, BrokenPipeError):
        return b""
    except OSError as error:  # a path that is too long has no errno's text
        raise NoControl(f"{path}: {error.strerror or error}") from error

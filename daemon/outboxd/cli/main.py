"""The command line: picks a command, and turns its errors into lines and exit codes.

Commands import what is heavy inside `run`, so that `outboxd healthcheck` stays a matter of
milliseconds: containers call it every few seconds.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

from outboxd.cli.arguments import require_config
from outboxd.cli.parsing import CommandParser, UsageError
from outboxd.core.errors import OutboxdError, SettingsError
from outboxd.core.exit_codes import ExitCode
from outboxd.version import __version__

COMMANDS = (
    "init",
    "run",
    "check",
    "migrate",
    "provision",
    "publish",
    "outbox",
    "where",
    "dlq",
    "pause",
    "resume",
    "reload",
    "restart",
    "dump",
    "healthcheck",
    "status",
    "demo",
    "localaws",
    "localpostgres",
    "version",
)
"""Modules of this package, in the order of `outboxd --help`; each has `add_parser` and `run`."""

INTERRUPTED = 128 + signal.SIGINT
CLOSED_PIPE = 128 + signal.SIGPIPE
"""What a shell reports for a process that the signal ended."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; nothing but a bug leaves a traceback."""
    try:
        code = _run(argv)
        _flush()
    except SettingsError as error:
        for problem in error.problems:
            _complain(problem)
        return ExitCode.INVALID_CONFIGURATION
    except UsageError as error:
        _complain(str(error))
        return ExitCode.USAGE
    except OutboxdError as error:
        _complain(" ".join(str(error).split()))
        return ExitCode.UNEXPECTED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader, `head` for one, has had enough
        # What is still buffered goes nowhere; else the interpreter complains once more at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    return code


def _run(argv: Sequence[str] | None) -> int:
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as end:  # argparse: --help, --version, or a usage error
        return end.code if isinstance(end.code, int) else ExitCode.OK
    require_config(arguments)
    return int(arguments.run(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="outboxd",
        description="Moves facts from a PostgreSQL transaction into reliable, idempotent work.",
        epilog="`outboxd COMMAND --help` explains a command; docs/cli.md lists the exit codes.",
    )
    parser.add_argument("--version", action="version", version=f"outboxd {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=CommandParser)
    for command in COMMANDS:
        import_module(f"outboxd.cli.{command}").add_parser(subparsers)
    return parser


def _complain(line: str) -> None:
    print(f"outboxd: {line}", file=sys.stderr)


def _flush() -> None:
    """Now, so that a closed pipe is still this command's business and not the interpreter's."""
    if sys.stdout is not None:
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

"""`outboxd check`: everything that can be known about a configuration without starting it."""

import argparse
import os
import sys
from contextlib import AbstractContextManager, redirect_stdout
from typing import TYPE_CHECKING, Any

from outboxd.cli.arguments import add_config_argument
from outboxd.cli.check_live import add_live_arguments, check_live, require_live
from outboxd.cli.long_work import told_when_slow
from outboxd.cli.wording import numbered
from outboxd.core.errors import SettingsError
from outboxd.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from outboxd.core.settings import Settings


PATIENCE_SECONDS = 5.0
"""After that it is said which import a check waits for."""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "check",
        help="check a configuration and import its handlers",
        description=(
            "Checks the configuration file, the rules between its settings, and that every handler "
            "can be imported and is of a form that can be called; classes of handlers are not "
            "constructed, so what their options lead to is not tried. Neither AWS nor the database "
            "is asked. Prints one line for each problem and exits with 78; exits with 0 when there "
            "is none, perhaps with notes about what is allowed but may not be meant. --live then "
            "asks both, changes nothing, receives and sends nothing, and exits with 1 when it "
            "finds an error."
        ),
        epilog="example: outboxd check --live --config config/shop.toml",
    )
    add_config_argument(parser)
    parser.add_argument(
        "--show",
        action="store_true",
        help="print the effective settings as JSON, defaults included, secrets masked",
    )
    parser.add_argument(
        "--live",
        action="store_true",
        help="also look at AWS and PostgreSQL, as the identity and the role that are configured",
    )
    add_live_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Check, and say what was found to be good. Raises SettingsError with what was not."""
    from outboxd.adapters.configuration import load_settings
    from outboxd.core.notes import notes

    require_live(arguments)
    settings = load_settings(arguments.config, os.environ)
    problems = [f"{arguments.config}: {problem}" for problem in _problems(settings)]
    if problems:
        raise SettingsError(problems)
    if arguments.show:
        _show(settings)
        return ExitCode.OK
    if not arguments.json:
        print(f"configuration ok: {_summary(settings)}")
        for note in notes(settings):
            print(f"note: {note}", flush=True)
    return check_live(settings, arguments) if arguments.live else ExitCode.OK


def _problems(settings: "Settings") -> list[str]:
    """What only shows outside of the file. Handlers run their module's code when they are imported:
    in this process, which is thrown away, and never in the supervisor's."""
    from outboxd.adapters.conninfo import conninfo_problems
    from outboxd.adapters.handlers import extend_import_path, handler_problems

    extend_import_path(settings.import_path)
    # What a module prints while it is imported must not stand in the middle of --show's JSON.
    with redirect_stdout(sys.stderr):
        return [*conninfo_problems(settings), *handler_problems(settings, _told_when_slow)]


def _told_when_slow(handler: str) -> AbstractContextManager[None]:
    """Say once on standard error what is waited for: a module that connects to something while it
    is imported would look like a check that hangs. It is not stopped, for it may only be slow."""
    module = handler.partition(":")[0]
    return told_when_slow(f"still importing {module} ...", PATIENCE_SECONDS)


def _show(settings: "Settings") -> None:
    import msgspec

    from outboxd.core.redaction import redacted

    print(msgspec.json.format(msgspec.json.encode(redacted(settings)), indent=2).decode())


def _summary(settings: "Settings") -> str:
    routes = len(settings.relay.routes) if settings.relay is not None else 0
    handlers = sum(len(queue.handlers) for queue in settings.queues.values())
    return ", ".join(
        [
            numbered(routes, "route"),
            numbered(len(settings.queues), "queue"),
            numbered(handlers, "handler"),
        ]
    )

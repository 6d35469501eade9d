"""What the actions of `outboxd outbox` take, and the database that they ask."""

import argparse
import getpass
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

from outboxd.cli.arguments import add_config_argument, add_json_argument

if TYPE_CHECKING:
    from outboxd.adapters.postgres.asking import Asking
    from outboxd.core.audit import Author
    from outboxd.core.outbox_filters import Selection, State, Target
    from outboxd.core.settings import Settings

_UNITS = {"s": 1, "min": 60, "m": 60, "h": 3_600, "d": 86_400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|min|m|h|d)")
_LONGEST_DAYS = 36_500


def add_common(parser: argparse.ArgumentParser) -> None:
    """`--config` and `--json`."""
    add_config_argument(parser)
    add_json_argument(parser)


def add_filters(parser: argparse.ArgumentParser, states: Sequence[str], default: str) -> None:
    """`--state`, `--type`, `--aggregate`, `--older-than`."""
    parser.add_argument(
        "--state", choices=states, metavar="STATE", help=f"{', '.join(states)} (default: {default})"
    )
    parser.add_argument(
        "--type", type=_glob, metavar="GLOB", help="only event types that the glob matches"
    )
    parser.add_argument(
        "--aggregate", type=aggregate, metavar="TYPE/ID", help="only events of this aggregate"
    )
    parser.add_argument(
        "--older-than",
        type=duration,
        metavar="AGE",
        help="only events that were inserted longer ago, such as 90s, 15min, 2h or 7d",
    )


def add_author(parser: argparse.ArgumentParser) -> None:
    """`--by`, `--reason`, `--dry-run` and `--yes`."""
    parser.add_argument(
        "--by",
        type=_name,
        metavar="NAME",
        help="who you are, for the audit (default: your name on this machine)",
    )
    parser.add_argument("--reason", type=_reason, metavar="TEXT", help="why, for the audit")
    parser.add_argument("--dry-run", action="store_true", help="show what would be done, and stop")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def author_of(arguments: argparse.Namespace, selection: dict[str, Any]) -> "Author":
    """Who runs the command."""
    from outboxd.core.audit import Author

    return Author(arguments.by or _name_here(), arguments.reason, selection)


def selection_of(arguments: argparse.Namespace, default: "State") -> "Selection":
    """The filters of the command line."""
    from outboxd.core.outbox_filters import Selection, State

    return Selection(
        state=State(arguments.state) if arguments.state else default,
        type=arguments.type,
        aggregate=arguments.aggregate,
        older_than_seconds=arguments.older_than,
    )


@contextmanager
def opened(arguments: argparse.Namespace) -> Iterator[tuple["Settings", "Asking"]]:
    """The settings and a connection, for the length of the block. Raises OutboxdError."""
    from outboxd.adapters.configuration import load_settings
    from outboxd.adapters.conninfo import database_of
    from outboxd.adapters.postgres.asking import asking

    settings = load_settings(arguments.config, os.environ)
    with asking(database_of(settings), "outboxd outbox") as database:
        yield settings, database


def target(text: str) -> "Target":
    """An event's id, or its seq."""
    if re.fullmatch(r"[0-9]{1,18}", text):
        return int(text)
    try:
        return UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither an event's id (a UUID) nor its seq (a number)"
        ) from None


def aggregate(text: str) -> tuple[str, str]:
    """TYPE/ID; the id may have further slashes. TYPE:ID, as `publish` wants it, is understood."""
    kind, separator, identity = text.partition("/" if "/" in text else ":")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form TYPE/ID, as order/42 is")
    return kind, identity


def duration(text: str) -> float:
    """A number with its unit, in seconds."""
    match = _DURATION.fullmatch(text.strip())
    value = float(match[1]) * _UNITS[match[2]] if match else -1.0
    if not 0 <= value <= _LONGEST_DAYS * _UNITS["d"]:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no age; write a number and a unit, such as 90s, 15min, 2h or 7d"
        )
    return value


def _glob(text: str) -> str:
    if not 1 <= len(text) <= 255 or "\0" in text:
        raise argparse.ArgumentTypeError("a glob has 1 to 255 characters")
    return text


def _name(text: str) -> str:
    if not 1 <= len(text) <= 200 or not text.isprintable():
        raise argparse.ArgumentTypeError("a name has 1 to 200 printable characters")
    return text


def _reason(text: str) -> str:
    if not 1 <= len(text) <= 500 or not text.isprintable():
        raise argparse.ArgumentTypeError("a reason has 1 to 500 printable characters")
    return text


def _name_here() -> str:
    try:
        return getpass.getuser()[:200]
    except (OSError, KeyError):  # a container whose user has no name
        return f"uid {os.getuid()}"

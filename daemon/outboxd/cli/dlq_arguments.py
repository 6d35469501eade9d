"""What the actions of `outboxd dlq` take, and which letters are meant by it."""

import argparse
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from outboxd.cli.arguments import add_config_argument, add_json_argument, count
from outboxd.cli.outbox_arguments import duration
from outboxd.cli.parsing import UsageError

if TYPE_CHECKING:
    from outboxd.core.letter_filters import Selection
    from outboxd.core.settings import Settings


class Moment(NamedTuple):
    """A time that was given as such, or as an age."""

    text: str
    at: float | None
    age: float | None

    def unix(self, now: float) -> float:
        """As a Unix time, at Unix time `now`."""
        return self.at if self.at is not None else now - (self.age or 0.0)


def add_common(parser: argparse.ArgumentParser) -> None:
    """The queue, `--config` and `--json`."""
    parser.add_argument("queue", metavar="QUEUE", help="a queue of [queues]")
    add_config_argument(parser)
    add_json_argument(parser)


def add_filters(parser: argparse.ArgumentParser) -> None:
    """`--id`, `--type`, `--reason`, `--handler`, `--source`, `--older-than`, `--newer-than`."""
    filters = parser.add_argument_group(
        "which letters", "of several filters all must hold, of a repeated one any"
    )
    filters.add_argument(
        "--id",
        action="append",
        default=[],
        metavar="ID",
        help="the id of the letter, of the message that it was, or of its event",
    )
    filters.add_argument(
        "--type",
        action="append",
        default=[],
        metavar="GLOB",
        help="event types that the glob matches, such as 'order.*'",
    )
    filters.add_argument(
        "--reason",
        action="append",
        default=[],
        metavar="REASON",
        help="why they are dead, as `list` shows it: rejected, max_attempts, max_receives …",
    )
    filters.add_argument(
        "--handler",
        action="append",
        default=[],
        metavar="NAME",
        help="letters that this handler has given up",
    )
    filters.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="NAME",
        help="letters of this SQS queue, such as QUEUE before it was renamed (default: QUEUE's)",
    )
    filters.add_argument(
        "--older-than",
        type=moment,
        metavar="AGE|TIME",
        help="dead for longer, such as 90s, 15min, 2h, 7d; or since before 2026-03-04T02:11:00Z",
    )
    filters.add_argument(
        "--newer-than", type=moment, metavar="AGE|TIME", help="dead for less, or since after"
    )


def add_limit(parser: argparse.ArgumentParser, verb: str) -> None:
    """`--limit`, without a default."""
    parser.add_argument("--limit", type=count, metavar="N", help=f"{verb} at most N")


def add_change(parser: argparse.ArgumentParser) -> None:
    """`--dry-run` and `--yes`."""
    parser.add_argument("--dry-run", action="store_true", help="show which, and stop")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def add_body(parser: argparse.ArgumentParser) -> None:
    """`--body`."""
    parser.add_argument(
        "--body", action="store_true", help="with the body, which may hold personal data"
    )


def selection_of(arguments: argparse.Namespace, settings: "Settings", now: float) -> "Selection":
    """The filters of the command line, for letters of the queue's own unless told otherwise.

    Raises UsageError."""
    from outboxd.core.expectations import suggestion
    from outboxd.core.letter_filters import Selection
    from outboxd.core.redrive import REASONS

    for reason in arguments.reason:
        if reason not in REASONS:
            near = suggestion(reason, REASONS) or "."
            raise UsageError(
                f'no letter has the reason "{reason}"{near} There are {", ".join(REASONS)}'
            )
    since = None if arguments.newer_than is None else arguments.newer_than.unix(now)
    until = None if arguments.older_than is None else arguments.older_than.unix(now)
    if since is not None and until is not None and since > until:
        raise UsageError("no letter is both: --older-than is a time before that of --newer-than")
    return Selection.of(
        arguments.id,
        arguments.reason,
        arguments.type,
        arguments.handler,
        since,
        until,
        arguments.source or [settings.sqs_queue_name(arguments.queue)],
    )


def in_words(arguments: argparse.Namespace) -> str:
    """The filters, to ask a person with; empty if there are none."""
    return ", ".join(_words(arguments))


def moment(text: str) -> Moment:
    """An age with its unit, or a time with its zone."""
    try:
        return Moment(text, None, duration(text))
    except argparse.ArgumentTypeError:
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither an age, such as 90s, 15min, 2h or 7d, nor a time, such as "
            "2026-03-04T02:11:00Z"
        ) from None
    if at.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text!r} has no zone; write {text}Z if it is UTC")
    return Moment(text, at.timestamp(), None)


def _words(arguments: argparse.Namespace) -> Iterator[str]:
    if arguments.id:
        number = len(arguments.id)
        yield f"id {arguments.id[0]}" if number == 1 else f"{number} ids"
    for name in ("type", "reason", "handler", "source"):
        if values := getattr(arguments, name):
            yield f"{name} {' or '.join(values)}"
    if arguments.older_than is not None:
        yield f"older than {arguments.older_than.text}"
    if arguments.newer_than is not None:
        yield f"newer than {arguments.newer_than.text}"

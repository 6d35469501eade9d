"""`outboxd where`: one event's whole life, from the outbox to the dead-letter queues."""

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any
from uuid import UUID

from outboxd.cli.arguments import seconds
from outboxd.cli.outbox_arguments import add_common
from outboxd.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from outboxd.core.event_history import DeadLetterFound, Life
    from outboxd.core.settings import Settings

SCAN_SECONDS = 10.0


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "where",
        help="show one event's whole life",
        description=(
            "Shows what is known of an event in the outbox, in the inbox and in the dead-letter "
            "queues of [queues]: when it was inserted and published, which handlers are done with "
            "it, which failed it and why, and where its dead letters are. Looking through a "
            "dead-letter queue counts as a receive of each letter, and hides the letters for that "
            "time; --no-queues does without. Exits with 1 when nothing is known of the event."
        ),
        epilog="example: outboxd where 0197f3c2-6d7e-7a01-9c55-2f1b8a3e4d10",
    )
    parser.add_argument("event", metavar="EVENT_ID", type=_event_id, help="the event's id")
    parser.add_argument(
        "--no-queues", action="store_true", help="do not look through dead-letter queues"
    )
    parser.add_argument(
        "--scan-seconds",
        type=seconds,
        default=SCAN_SECONDS,
        metavar="SECONDS",
        help=f"how long to look through each dead-letter queue (default: {SCAN_SECONDS:g})",
    )
    add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Ask every place, print, and say by the exit code whether any of them knows the event."""
    import os

    from outboxd.adapters.configuration import load_settings

    settings = load_settings(arguments.config, os.environ)
    life = _life(arguments, settings)
    show = _print_json if arguments.json else _print
    show(arguments.event, life, settings)
    for each in life.unasked:
        print(f"outboxd: {each}", file=sys.stderr)
    return ExitCode.OK if life.known else ExitCode.UNEXPECTED


def _life(arguments: argparse.Namespace, settings: "Settings") -> "Life":
    import msgspec

    from outboxd.core.event_history import Life

    unasked: list[str] = []
    letters: list[DeadLetterFound] = []
    message_ids: set[str] = set()
    if not arguments.no_queues:
        for queue in _one_of_each(settings):
            letters += _letters(arguments, settings, queue, message_ids, unasked)
    if settings.database is None:
        return Life(letters=letters, unasked=[*unasked, "there is no [database] to ask"])
    return msgspec.structs.replace(
        _in_database(arguments.event, settings, message_ids), letters=letters, unasked=unasked
    )


def _one_of_each(settings: "Settings") -> list[str]:
    """A queue for each dead-letter queue; several may share one."""
    return list({settings.dead_letter_name(name): name for name in settings.queues}.values())


def _in_database(event: UUID, settings: "Settings", message_ids: set[str]) -> "Life":
    from outboxd.adapters.conninfo import database_of
    from outboxd.adapters.postgres.asking import asking
    from outboxd.adapters.postgres.inbox_history import InboxHistory
    from outboxd.adapters.postgres.outbox_rows import OutboxRows
    from outboxd.core.event_history import Life
    from outboxd.core.outbox_filters import route_globs

    with asking(database_of(settings), "outboxd where") as database:
        inbox = InboxHistory(database)
        failures = inbox.failures(event)
        return Life(
            rows=OutboxRows(database, route_globs(settings)).found([event]),
            marks=inbox.marks(event),
            failures=failures,
            suspected=inbox.suspected(message_ids | {failure.message_id for failure in failures}),
        )


def _letters(
    arguments: argparse.Namespace,
    settings: "Settings",
    queue: str,
    message_ids: set[str],
    unasked: list[str],
) -> "list[DeadLetterFound]":
    """The event's dead letters of one queue; `message_ids` gets those that they had before."""
    import anyio

    from outboxd.adapters.sqs.dead_letters import dead_letters
    from outboxd.core.errors import Unavailable
    from outboxd.core.event_history import DeadLetterFound
    from outboxd.core.letter_filters import Selection

    end = time.monotonic() + arguments.scan_seconds
    name = settings.dead_letter_name(queue)
    wanted = Selection.of([str(arguments.event)], [])
    try:
        with dead_letters(
            settings, queue, redriving=False, stopping=lambda: time.monotonic() > end
        ) as letters:
            report = anyio.run(letters.look, wanted, None)
            stopped = letters.stopped
    except Unavailable as error:
        unasked.append(f"{name} was not looked through: {error}")
        return []
    if report.outage is not None:
        unasked.append(f"{name} was not looked through to its end: {report.outage}")
    elif stopped:
        unasked.append(
            f"{name} was looked through for {arguments.scan_seconds:g} s, not to its end; "
            "give --scan-seconds"
        )
    elif report.cut_groups:
        unasked.append(f"{name} has message groups of which SQS shows ten letters at a time")
    own = {settings.sqs_queue_name(each): each for each in settings.queues}
    message_ids.update(e.facts.message_id for e in report.found if e.facts.message_id)
    return [
        DeadLetterFound(
            own.get(entry.source_queue or "", queue),
            name,
            entry.message.message_id,
            entry.facts.reason,
            entry.facts.error,
            entry.message.sent_at,
            tuple(blamed.name for blamed in entry.facts.handlers),
        )
        for entry in report.found
    ]


def _print(event: UUID, life: "Life", settings: "Settings") -> None:
    from outboxd.cli.where_output import print_life

    print_life(event, life, settings, time.time())


def _print_json(event: UUID, life: "Life", settings: "Settings") -> None:
    from outboxd.cli.where_output import print_life_json

    print_life_json(event, life, settings, time.time())


def _event_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no UUID; an event whose id is none has one in the logs and in the "
            "tables of the inbox"
        ) from None

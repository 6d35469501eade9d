"""`outboxd dlq list`: which dead letters there are, and why."""

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from outboxd.cli.arguments import count
from outboxd.cli.dlq_arguments import add_body, add_common, add_filters, selection_of
from outboxd.cli.dlq_work import add_act, verdict
from outboxd.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from outboxd.adapters.sqs.dead_letters import DeadLetters
    from outboxd.core.letter_filters import Selection
    from outboxd.core.settings import Settings


def add_action(actions: Any) -> None:
    """Describe the action to argparse."""
    parser = actions.add_parser(
        "list",
        help="show dead letters and why they are dead",
        description=(
            "Shows dead letters and leaves them where they are. They are hidden from others while "
            "it looks, and SQS counts one receive for each: it has no way to look without. With a "
            "[database] it says which handlers have processed an event already."
        ),
        epilog="example: outboxd dlq list order-events --reason max_attempts --newer-than 2h",
    )
    add_common(parser)
    add_filters(parser)
    parser.add_argument(
        "--limit", type=count, default=100, metavar="N", help="show at most N (default: 100)"
    )
    add_body(parser)
    add_act(parser, _list)


def _list(arguments: argparse.Namespace, settings: "Settings", stopping: Callable[[], bool]) -> int:
    from outboxd.adapters.sqs.dead_letters import dead_letters

    selection = selection_of(arguments, settings, time.time())
    with dead_letters(settings, arguments.queue, stopping=stopping) as letters:
        return show_chosen(arguments, settings, letters, selection, body=arguments.body)


def show_chosen(
    arguments: argparse.Namespace,
    settings: "Settings",
    letters: "DeadLetters",
    selection: "Selection",
    *,
    body: bool = False,
) -> ExitCode:
    """Look and print; what a dry run does as well."""
    import anyio

    from outboxd.cli.dlq_inbox import inbox_of, tell_unasked
    from outboxd.cli.dlq_output import Listing, print_listing, print_listing_json

    report = anyio.run(letters.look, selection, arguments.limit)
    with inbox_of(settings, arguments.queue) as inbox:
        standings = inbox.standings(report.found)
    listing = Listing(
        letters.about,
        report,
        time.time(),
        limit=arguments.limit,
        narrowed=selection.narrows,
        standings=standings if inbox.answers else None,
        inbox_unasked=inbox.unasked,
    )
    show = print_listing_json if arguments.json else print_listing
    show(listing, body=body)
    tell_unasked(inbox)
    return verdict(arguments.limit, letters, report, selection)

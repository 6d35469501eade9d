"""`outboxd dlq show`: all of one dead letter."""

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from outboxd.cli.dlq_arguments import add_body, add_common
from outboxd.cli.dlq_work import add_act, verdict

if TYPE_CHECKING:
    from outboxd.core.settings import Settings


def add_action(actions: Any) -> None:
    """Describe the action to argparse."""
    parser = actions.add_parser(
        "show",
        help="show all of one dead letter",
        description=(
            "Shows a dead letter: the whole error, of each handler, its attributes, and with "
            "--body what it says. Leaves it where it is, with the traces that `list` leaves. An "
            "event may have several letters. Exits with 1 when there is none."
        ),
        epilog="example: outboxd dlq show order-events 0197f3c2-6d7e-7a01-9c55-2f1b8a3e4d10 --body",
    )
    add_common(parser)
    parser.add_argument(
        "id", metavar="ID", help="the id of the letter, of the message that it was, or of its event"
    )
    add_body(parser)
    add_act(parser, _show)


def _show(arguments: argparse.Namespace, settings: "Settings", stopping: Callable[[], bool]) -> int:
    import anyio

    from outboxd.adapters.sqs.dead_letters import dead_letters
    from outboxd.cli.dlq_inbox import inbox_of, tell_unasked
    from outboxd.cli.dlq_output import Listing, print_letters, print_listing_json
    from outboxd.core.letter_filters import Selection

    selection = Selection.of([arguments.id])
    with dead_letters(settings, arguments.queue, stopping=stopping) as letters:
        report = anyio.run(letters.look, selection, None)
        with inbox_of(settings, arguments.queue) as inbox:
            standings = inbox.standings(report.found)
        listing = Listing(
            letters.about,
            report,
            time.time(),
            limit=None,
            narrowed=True,
            standings=standings if inbox.answers else None,
            inbox_unasked=inbox.unasked,
        )
        show = print_listing_json if arguments.json else print_letters
        show(listing, body=arguments.body)
        tell_unasked(inbox)
        return verdict(None, letters, report, selection)

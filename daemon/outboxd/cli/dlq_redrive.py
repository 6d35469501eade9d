"""`outboxd dlq redrive`: dead letters go back to their queue."""

import argparse
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from outboxd.cli.arguments import count
from outboxd.cli.confirmation import confirm
from outboxd.cli.dlq_arguments import (
    add_change,
    add_common,
    add_filters,
    add_limit,
    in_words,
    selection_of,
)
from outboxd.cli.dlq_list import show_chosen
from outboxd.cli.dlq_work import add_act, verdict
from outboxd.cli.long_work import progress_line
from outboxd.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from outboxd.adapters.sqs.dead_letters import DeadLetters
    from outboxd.adapters.sqs.letter_reports import Report
    from outboxd.cli.dlq_inbox import Inbox, Standing
    from outboxd.core.letter_filters import Selection
    from outboxd.core.redrive import Entry
    from outboxd.core.settings import Settings


def add_action(actions: Any) -> None:
    """Describe the action to argparse."""
    parser = actions.add_parser(
        "redrive",
        help="send dead letters back to their queue",
        description=(
            "Sends dead letters back to their queue, and deletes those whose send SQS has "
            "confirmed; all others stay. Handlers that had taken effect before do not run again, "
            "if they have an inbox. Can be interrupted and repeated. Without a filter it sends all."
        ),
        epilog=(
            "example: outboxd dlq redrive order-events --type 'order.*' --reason rejected --dry-run"
        ),
    )
    add_common(parser)
    add_filters(parser)
    add_limit(parser, "redrive")
    parser.add_argument(
        "--rate",
        type=count,
        metavar="N",
        help="at most N letters a second (default: as fast as it goes)",
    )
    add_change(parser)
    add_act(parser, _redrive)


def _redrive(
    arguments: argparse.Namespace, settings: "Settings", stopping: Callable[[], bool]
) -> int:
    from outboxd.adapters.sqs.dead_letters import WORKING_SECONDS, dead_letters

    selection = selection_of(arguments, settings, time.time())
    if arguments.dry_run:
        with dead_letters(settings, arguments.queue, stopping=stopping) as letters:
            return show_chosen(arguments, settings, letters, selection)
    with dead_letters(
        settings,
        arguments.queue,
        redriving=True,
        hidden_seconds=WORKING_SECONDS,
        stopping=stopping,
    ) as letters:
        _confirm(arguments, letters)
        return _move(arguments, settings, letters, selection)


def _confirm(arguments: argparse.Namespace, letters: "DeadLetters") -> None:
    about = letters.about
    chosen = in_words(arguments)
    which = f"the letters ({chosen})" if chosen else f"the letters (about {about.visible})"
    most = f", at most {arguments.limit}," if arguments.limit is not None else ""
    confirm(f"{which} of {about.name}{most} go back to {letters.target}", yes=arguments.yes)


def _move(
    arguments: argparse.Namespace,
    settings: "Settings",
    letters: "DeadLetters",
    selection: "Selection",
) -> ExitCode:
    import anyio

    from outboxd.adapters.sqs.letter_moves import Pace
    from outboxd.cli.dlq_inbox import inbox_of, tell_unasked
    from outboxd.cli.dlq_output import print_redriven, print_redriven_json

    standings: dict[str, Standing] = {}
    with (
        inbox_of(settings, arguments.queue) as inbox,
        progress_line("letters", letters.about.visible) as told,
    ):
        pace = Pace(arguments.rate)

        async def work() -> "Report":
            return await letters.redrive(
                selection,
                arguments.limit,
                lambda report: told(report.looked_at, f", {len(report.done)} redriven"),
                pace=pace,
                before=lambda batch: _ask(inbox, batch, standings),
            )

        report = anyio.run(work)
    known = standings if inbox.answers else None
    show = print_redriven_json if arguments.json else print_redriven
    show(letters, report, known)
    tell_unasked(inbox)
    return verdict(arguments.limit, letters, report, selection)


def _ask(inbox: "Inbox", batch: "Sequence[Entry]", standings: "dict[str, Standing]") -> None:
    """Before they are sent: once a letter is back, its handlers are at work on it."""
    standings.update(inbox.standings(batch))

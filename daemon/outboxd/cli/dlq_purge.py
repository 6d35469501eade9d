"""`outboxd dlq purge`: dead letters are deleted for good."""

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from outboxd.cli.confirmation import confirm_by_name
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
from outboxd.cli.parsing import UsageError

if TYPE_CHECKING:
    from outboxd.adapters.sqs.dead_letters import DeadLetters
    from outboxd.adapters.sqs.letter_reports import Report
    from outboxd.core.settings import Settings


def add_action(actions: Any) -> None:
    """Describe the action to argparse."""
    parser = actions.add_parser(
        "purge",
        help="delete dead letters for good",
        description=(
            "Deletes dead letters: those that the filters choose, or with --all every one that "
            "was there when it began. Nothing brings them back: `outboxd dlq export` keeps them. "
            "Asks for the name of the dead-letter queue. Can be interrupted and repeated."
        ),
        epilog="example: outboxd dlq purge order-events --type 'cart.*' --older-than 7d --dry-run",
    )
    add_common(parser)
    add_filters(parser)
    parser.add_argument("--all", action="store_true", help="all letters; instead of filters")
    add_limit(parser, "delete")
    add_change(parser)
    add_act(parser, _purge)


def _purge(
    arguments: argparse.Namespace, settings: "Settings", stopping: Callable[[], bool]
) -> int:
    import anyio

    from outboxd.adapters.sqs.dead_letters import WORKING_SECONDS, dead_letters
    from outboxd.cli.dlq_output import print_purged, print_purged_json

    began = time.time()
    selection = selection_of(arguments, settings, began)
    if selection.narrows == arguments.all:
        raise UsageError("purge: choose letters by filters, or give --all; not both")
    if arguments.dry_run:
        with dead_letters(settings, arguments.queue, stopping=stopping) as letters:
            return show_chosen(arguments, settings, letters, selection)
    with dead_letters(
        settings, arguments.queue, hidden_seconds=WORKING_SECONDS, stopping=stopping
    ) as letters:
        _confirm(arguments, letters)
        with progress_line("letters", letters.about.visible) as told:

            async def work() -> "Report":
                return await letters.purge(
                    selection,
                    arguments.limit,
                    lambda report: told(report.looked_at, f", {len(report.done)} purged"),
                    began=began,
                )

            report = anyio.run(work)
        show = print_purged_json if arguments.json else print_purged
        show(letters.about, report)
        return verdict(arguments.limit, letters, report, selection, verb="deleted")


def _confirm(arguments: argparse.Namespace, letters: "DeadLetters") -> None:
    about = letters.about
    which = in_words(arguments) or f"all, about {about.visible}"
    most = f", at most {arguments.limit}," if arguments.limit is not None else ""
    confirm_by_name(
        f"the letters ({which}) of {about.name}{most} are deleted for good",
        about.name,
        yes=arguments.yes,
    )

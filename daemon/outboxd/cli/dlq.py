"""`outboxd dlq`: shows the dead letters of a queue, and sends them back to it."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from outboxd.cli.arguments import add_config_argument, add_json_argument, count
from outboxd.cli.confirmation import confirm
from outboxd.cli.long_work import progress_line, stopped_by_sigint
from outboxd.cli.parsing import CommandParser
from outboxd.core.errors import OutboxdError, Unavailable
from outboxd.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from outboxd.adapters.sqs.dead_letters import DeadLetterQueue, DeadLetters, Report
    from outboxd.core.redrive import Selection
    from outboxd.core.settings import Settings


class NotKnown(OutboxdError):
    """There is no queue or no reason of that name; the text says which there are."""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "dlq",
        help="show dead letters, and send them back to their queue",
        description=(
            "Works on the dead-letter queue of a queue of [queues]. `list` shows why each letter "
            "is there; `redrive` sends letters back once the reason is gone."
        ),
        epilog="example: outboxd dlq list order-events --config config/shop.toml",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True, parser_class=CommandParser)
    _add_list(actions)
    _add_redrive(actions)


def _add_list(actions: Any) -> None:
    parser = actions.add_parser(
        "list",
        help="show dead letters and why they are dead",
        description=(
            "Shows dead letters and leaves them where they are. They are hidden from others while "
            "it looks, and SQS counts one receive for each: it has no way to look without."
        ),
        epilog="example: outboxd dlq list order-events --limit 20",
    )
    parser.add_argument("queue", metavar="QUEUE", help="a queue of [queues]")
    parser.add_argument(
        "--limit", type=count, default=100, metavar="N", help="show at most N (default: 100)"
    )
    _add_common(parser, _list)


def _add_redrive(actions: Any) -> None:
    parser = actions.add_parser(
        "redrive",
        help="send dead letters back to their queue",
        description=(
            "Sends dead letters back to their queue, and deletes those whose send SQS has "
            "confirmed; all others stay. Handlers that had taken effect before do not run again, "
            "if they have an inbox. Can be interrupted and repeated."
        ),
        epilog="example: outboxd dlq redrive order-events --reason rejected --dry-run",
    )
    parser.add_argument("queue", metavar="QUEUE", help="a queue of [queues]")
    parser.add_argument(
        "--id",
        action="append",
        default=[],
        metavar="ID",
        help="only this message id or event id; may be repeated",
    )
    parser.add_argument(
        "--reason",
        action="append",
        default=[],
        metavar="REASON",
        help="only letters with this reason, as `list` shows it; may be repeated",
    )
    parser.add_argument("--limit", type=count, metavar="N", help="redrive at most N")
    parser.add_argument("--dry-run", action="store_true", help="show which, and stop")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    _add_common(parser, _redrive)


def _add_common(
    parser: argparse.ArgumentParser,
    act: "Callable[[argparse.Namespace, Settings, Callable[[], bool]], int]",
) -> None:
    add_config_argument(parser)
    add_json_argument(parser)
    parser.set_defaults(run=run, act=act)


def run(arguments: argparse.Namespace) -> int:
    """Do it; a first Ctrl-C waits until every letter is in its place."""
    from outboxd.adapters.configuration import load_settings
    from outboxd.core.expectations import suggestion

    settings = load_settings(arguments.config, os.environ)
    if arguments.queue not in settings.queues:
        near = suggestion(arguments.queue, list(settings.queues))
        raise NotKnown(f'[queues] has no "{arguments.queue}"{near}')
    with stopped_by_sigint() as stopping:
        code: int = arguments.act(arguments, settings, stopping)
        if stopping():
            raise KeyboardInterrupt
    return code


def _list(arguments: argparse.Namespace, settings: "Settings", stopping: Callable[[], bool]) -> int:
    from outboxd.adapters.sqs.dead_letters import dead_letters
    from outboxd.core.redrive import Selection

    with dead_letters(settings, arguments.queue, redriving=False, stopping=stopping) as letters:
        return _look(arguments, letters, Selection())


def _redrive(
    arguments: argparse.Namespace, settings: "Settings", stopping: Callable[[], bool]
) -> int:
    from outboxd.adapters.sqs.dead_letters import dead_letters
    from outboxd.core.redrive import REASONS, Selection

    if unknown := sorted(set(arguments.reason) - set(REASONS)):
        raise NotKnown(f'there is no reason "{unknown[0]}"; reasons are {", ".join(REASONS)}')
    selection = Selection.of(arguments.id, arguments.reason)
    redriving = not arguments.dry_run
    with dead_letters(settings, arguments.queue, redriving=redriving, stopping=stopping) as letters:
        if arguments.dry_run:
            return _look(arguments, letters, selection)
        _confirm(arguments, letters)
        return _move(arguments, letters, selection)


def _look(
    arguments: argparse.Namespace, letters: "DeadLetters", selection: "Selection"
) -> ExitCode:
    import anyio

    from outboxd.cli.dlq_output import print_listing, print_listing_json

    report = anyio.run(letters.look, selection, arguments.limit)
    now = time.time()
    show = print_listing_json if arguments.json else print_listing
    show(letters.about, report, now, limit=arguments.limit)
    return _verdict(arguments, letters, report, selection)


def _confirm(arguments: argparse.Namespace, letters: "DeadLetters") -> None:
    about = letters.about
    chosen = arguments.id or arguments.reason
    which = "the chosen letters" if chosen else f"the letters (about {about.visible})"
    confirm(f"{which} of {about.name} go back to {letters.target}", yes=arguments.yes)


def _move(
    arguments: argparse.Namespace, letters: "DeadLetters", selection: "Selection"
) -> ExitCode:
    import anyio

    from outboxd.cli.dlq_output import print_redriven, print_redriven_json

    with progress_line("redriven", letters.about.visible) as told:
        report = anyio.run(letters.redrive, selection, arguments.limit, told)
    show = print_redriven_json if arguments.json else print_redriven
    show(letters.about, letters.target, report)
    for failure in report.failed:
        where = "sent, but also still" if failure.sent else "not confirmed, so still"
        name = failure.entry.message.message_id
        _complain(f"{name}: {where} in {letters.about.name}: {failure.error}")
    return _verdict(arguments, letters, report, selection)


def _verdict(
    arguments: argparse.Namespace,
    letters: "DeadLetters",
    report: "Report",
    selection: "Selection",
) -> ExitCode:
    """What went wrong, to standard error, and the exit code. Raises Unavailable for an outage."""
    if report.still_hidden is not None:
        _complain(
            f"letters could not be given back; they are visible again within two minutes: "
            f"{report.still_hidden}"
        )
    if report.outage is not None:
        raise Unavailable(report.outage)
    cut_short = letters.stopped or len(report.found) == arguments.limit
    if report.cut_groups and not cut_short:
        _complain(_hidden_behind(report.cut_groups))
    missing = [] if cut_short else _missing(report, selection)
    for each in missing:
        _complain(_not_found(each, letters.about, selection))
    return ExitCode.UNEXPECTED if missing or report.failed else ExitCode.OK


def _not_found(each: str, about: "DeadLetterQueue", selection: "Selection") -> str:
    reason = " and such a reason" if selection.reasons else ""
    hidden = f"; {about.in_flight} were hidden from this look" if about.in_flight else ""
    return (
        f"no letter in {about.name} has the message id or event id {each}{reason}{hidden}; "
        "`outboxd dlq list` shows what there is"
    )


def _hidden_behind(groups: "Sequence[str]") -> str:
    of = f"message group {groups[0]}" + (
        f" and {len(groups) - 1} others" if len(groups) > 1 else ""
    )
    return (
        f"of {of} there may be more letters: SQS shows ten of a group at the most, and those "
        "behind them once they are redriven or deleted"
    )


def _missing(report: "Report", selection: "Selection") -> list[str]:
    found: set[str] = set()
    for entry in [*report.found, *report.came_back]:
        found |= entry.ids
    return sorted(selection.ids - found)


def _complain(line: str) -> None:
    print(f"outboxd: {' '.join(line.split())}", file=sys.stderr)

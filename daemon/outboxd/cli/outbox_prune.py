"""`outboxd outbox prune`: deletes events that are done with before their retention is over."""

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from outboxd.cli.confirmation import confirm
from outboxd.cli.long_work import progress_line, stopped_by_sigint
from outboxd.cli.outbox_arguments import add_author, add_common, author_of, duration, opened
from outboxd.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from outboxd.adapters.postgres.operations import Operations


def add_action(actions: Any) -> None:
    """Describe the action to argparse."""
    parser = actions.add_parser(
        "prune",
        help="delete published events that are older",
        description=(
            "Deletes events that were published, or discarded, longer ago, as the daemon does "
            "after [relay] retention_days. Pending and dead events are never touched. Works in "
            "small steps that publishing does not notice; can be interrupted and repeated."
        ),
        epilog="example: outboxd outbox prune --older-than 2d --by kim",
    )
    parser.add_argument(
        "--older-than",
        type=duration,
        required=True,
        metavar="AGE",
        help="published or discarded longer ago than this, such as 12h or 7d",
    )
    add_author(parser)
    add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Count or ask, delete, say how many."""
    from outboxd.adapters.postgres.operations import Operations
    from outboxd.cli.wording import lasting

    selection = {"older_than_seconds": arguments.older_than}
    with opened(arguments) as (_, database):
        doing = Operations(database, author_of(arguments, selection))
        if not arguments.dry_run:
            confirm(
                "delete events that were published or discarded more than "
                f"{lasting(arguments.older_than)} ago",
                yes=arguments.yes,
            )
        with stopped_by_sigint() as stopping:
            rows = _walk(arguments, doing, stopping)
            _report(arguments, doing, rows)
            if stopping():
                raise KeyboardInterrupt
    return ExitCode.OK


def _walk(arguments: argparse.Namespace, doing: "Operations", stopping: Callable[[], bool]) -> int:
    lowest, upto = doing.span()
    first = after = lowest - 1
    rows = 0
    with progress_line("outbox rows looked at:", max(0, upto - first)) as told:
        while not stopping():
            step = doing.prune(arguments.older_than, after, upto, dry=arguments.dry_run)
            rows += step.rows
            after = step.last_seq
            told(after - first)
            if step.finished:
                break
    return rows


def _report(arguments: argparse.Namespace, doing: "Operations", rows: int) -> None:
    from outboxd.cli.outbox_output import print_json
    from outboxd.cli.wording import counted

    if arguments.json:
        run_id = None if arguments.dry_run or not rows else str(doing.run)
        print_json(
            {"command": "prune", "run": run_id, "dry_run": arguments.dry_run, "pruned": rows}
        )
        return
    print(f"{'would be ' if arguments.dry_run else ''}pruned: {counted(rows, 'event')}")
    sys.stdout.flush()

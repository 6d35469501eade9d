"""`outboxd outbox audit`: who requeued, discarded and pruned what."""

import argparse
from typing import TYPE_CHECKING, Any
from uuid import UUID

from outboxd.cli.arguments import count
from outboxd.cli.outbox_arguments import add_common, opened
from outboxd.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from outboxd.core.audit import Run

EVENTS_SHOWN = 1_000
"""Ids of one run that `--json` has; the table outbox_audit has all."""


def add_action(actions: Any) -> None:
    """Describe the action to argparse."""
    parser = actions.add_parser(
        "audit",
        help="show who requeued, discarded and pruned events",
        description=(
            "Shows the last runs of requeue, discard and prune, the newest first: when, who, why, "
            "on what, and how many events. --json has the ids of the events as well."
        ),
        epilog="example: outboxd outbox audit --limit 20",
    )
    parser.add_argument(
        "--limit", type=count, default=20, metavar="N", help="show at most N (default: 20)"
    )
    add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Look and print."""
    from outboxd.adapters.postgres.operations import events_of, past_runs
    from outboxd.cli.outbox_output import print_json

    with opened(arguments) as (_, database):
        runs = past_runs(database, arguments.limit)
        if arguments.json:
            print_json(
                [_whole(each, events_of(database, UUID(each.run), EVENTS_SHOWN)) for each in runs]
            )
        else:
            for each in runs:
                _print(each)
    return ExitCode.OK


def _print(run: "Run") -> None:
    from outboxd.cli.wording import at, counted, line

    print(f"{at(run.ended_at)} UTC  {run.command}  {counted(run.events, 'event')}")
    print(f"    by        {line(run.operator)} (role {line(run.role)})")
    if run.reason:
        print(f"    reason    {line(run.reason)}")
    chosen = ", ".join(f"{name} {_words(value)}" for name, value in run.selection.items())
    print(f"    chosen    {line(chosen)}")
    print(f"    seq       {run.first_seq} to {run.last_seq}", flush=True)


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _whole(run: "Run", events: list[str]) -> dict[str, Any]:
    from outboxd.cli.wording import iso

    return {
        "run": run.run,
        "began_at": iso(run.began_at),
        "ended_at": iso(run.ended_at),
        "role": run.role,
        "operator": run.operator,
        "command": run.command,
        "reason": run.reason,
        "selection": run.selection,
        "events": run.events,
        "first_seq": run.first_seq,
        "last_seq": run.last_seq,
        "event_ids": events,
    }

"""`outboxd outbox requeue` and `discard`: a person decides about events."""

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from outboxd.cli.confirmation import confirm
from outboxd.cli.long_work import progress_line, stopped_by_sigint
from outboxd.cli.outbox_arguments import (
    author_of,
    opened,
)
from outboxd.cli.outbox_choice import Verb, add_choice, choice_of, picked, require_choice
from outboxd.cli.outbox_list import STATES
from outboxd.cli.wording import counted
from outboxd.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from outboxd.adapters.postgres.operations import Operations
    from outboxd.core.outbox_standing import Row

AGGREGATES_COUNTED = 10_000
"""Beyond so many it is not said how much waits behind the events; it would take too long."""


def add_requeue(actions: Any) -> None:
    """Describe `requeue` to argparse."""
    parser = actions.add_parser(
        "requeue",
        help="make dead or stopped events pending again",
        description=(
            "Makes dead, discarded or stopped events pending again, with all their attempts. Mend "
            "first what the error names, or they come to the same end. Destinations that have "
            "accepted an event are not sent it again. Later events of the same aggregate may have "
            "been published meanwhile: consumers then see this one late, out of order."
        ),
        epilog="example: outboxd outbox requeue --type 'order.*' --by kim --reason 'queue is back'",
    )
    add_choice(parser, ("dead", "discarded", "stopped"))
    parser.set_defaults(run=run_requeue)


def add_discard(actions: Any) -> None:
    """Describe `discard` to argparse."""
    parser = actions.add_parser(
        "discard",
        help="mark events as never to be published",
        description=(
            "Marks dead or pending events as never to be published. They stay in the table, dead "
            "and with who and why as their error, until the retention is over; `requeue` takes it "
            "back until then. An event that is being sent at this moment may be published "
            "nevertheless; its row then says so."
        ),
        epilog="example: outboxd outbox discard 1042 --by kim --reason 'test data'",
    )
    add_choice(parser, tuple(state for state in STATES if state not in ("discarded", "published")))
    parser.set_defaults(run=run_discard)


def run_requeue(arguments: argparse.Namespace) -> int:
    """Pick, ask, requeue."""
    from outboxd.core.outbox_standing import requeue_refusal

    verb = Verb(
        "requeue",
        "requeued",
        "go out after that",
        requeue_refusal,
        lambda doing, seqs: doing.requeue(seqs),
    )
    return _run(arguments, verb)


def run_discard(arguments: argparse.Namespace) -> int:
    """Pick, ask, discard."""
    from outboxd.core.outbox_standing import discard_refusal

    verb = Verb(
        "discard",
        "discarded",
        "need not wait for that",
        discard_refusal,
        lambda doing, seqs: doing.discard(seqs),
    )
    return _run(arguments, verb)


def _run(arguments: argparse.Namespace, verb: Verb) -> int:
    from outboxd.adapters.postgres.operations import Operations
    from outboxd.adapters.postgres.outbox_rows import OutboxRows
    from outboxd.core.outbox_filters import route_globs

    require_choice(arguments, verb)
    with opened(arguments) as (settings, database):
        rows = OutboxRows(database, route_globs(settings))
        doing = Operations(database, author_of(arguments, choice_of(arguments)))
        chosen, refused = picked(arguments, rows, verb, database.now())
        behind = _behind(doing, chosen)
        code = _act(arguments, verb, doing, chosen, behind, refused) if chosen else ExitCode.OK
    if not chosen:
        _report(arguments, verb, doing, [], [], behind, refused)
    for each in refused:
        print(f"outboxd: {each}", file=sys.stderr)
    return ExitCode.UNEXPECTED if refused else code


def _act(
    arguments: argparse.Namespace,
    verb: Verb,
    doing: "Operations",
    chosen: "list[Row]",
    behind: int | None,
    refused: list[str],
) -> ExitCode:
    if arguments.dry_run:
        _report(arguments, verb, doing, chosen, [], behind, refused)
        return ExitCode.OK
    confirm(
        f"{verb.name} {counted(len(chosen), 'event')}{_waiting(verb, behind)}", yes=arguments.yes
    )
    with stopped_by_sigint() as stopping:
        done = _change(verb, doing, chosen, stopping)
        busy = [] if stopping() else [row for row in chosen if row.seq not in done]
        changed = [row for row in chosen if row.seq in done]
        _report(arguments, verb, doing, changed, busy, behind, refused)
        if stopping():
            raise KeyboardInterrupt
    return ExitCode.UNEXPECTED if busy else ExitCode.OK


def _change(
    verb: Verb, doing: "Operations", chosen: "list[Row]", stopping: Callable[[], bool]
) -> set[int]:
    from outboxd.adapters.postgres.operations import BATCH

    done: set[int] = set()
    with progress_line(verb.done, len(chosen)) as told:
        for start in range(0, len(chosen), BATCH):
            if stopping():
                break
            done.update(verb.act(doing, [row.seq for row in chosen[start : start + BATCH]]))
            told(len(done))
    return done


def _behind(doing: "Operations", chosen: "list[Row]") -> int | None:
    """How many pending events of the same aggregates come after these; None if not counted."""
    from outboxd.adapters.postgres.operations import COUNT_CAP
    from outboxd.adapters.postgres.outbox_rows import LOOK

    first: dict[tuple[str, str], int] = {}
    for row in chosen:
        first[row.aggregate] = min(row.seq, first.get(row.aggregate, row.seq))
    if not first:
        return 0
    if len(first) > AGGREGATES_COUNTED:
        return None
    # A discard may choose some of those that come after; they are not behind themselves.
    among = sum(1 for row in chosen if row.dead_at is None and row.seq > first[row.aggregate])
    aggregates = [(*each, seq) for each, seq in first.items()]
    return max(0, doing.followers(aggregates, LOOK, COUNT_CAP + among) - among)


def _waiting(verb: Verb, behind: int | None) -> str:
    if not behind:
        return ""
    from outboxd.adapters.postgres.operations import COUNT_CAP

    followers = counted(behind, "pending event", cap=COUNT_CAP)
    return f"; {followers} of the same aggregates {verb.then}"


def _report(
    arguments: argparse.Namespace,
    verb: Verb,
    doing: "Operations",
    changed: "list[Row]",
    busy: "list[Row]",
    behind: int | None,
    refused: list[str],
) -> None:
    from outboxd.cli.outbox_output import brief, print_json

    if arguments.json:
        print_json(
            {
                "command": verb.name,
                "run": None if arguments.dry_run or not changed else str(doing.run),
                "dry_run": arguments.dry_run,
                verb.done: brief(changed),
                "busy": brief(busy),
                "refused": refused,
                "pending_behind": behind,
            }
        )
        return
    if arguments.dry_run:
        for row in changed:
            print(f"{row.seq}  {row.id}  {row.event_type}")
    would = "would be " if arguments.dry_run else ""
    print(
        f"{would}{verb.done}: {counted(len(changed), 'event')}{_waiting(verb, behind)}", flush=True
    )
    if busy:
        print(
            f"left: {counted(len(busy), 'event')}, changed by somebody else at this moment; repeat "
            "the command"
        )

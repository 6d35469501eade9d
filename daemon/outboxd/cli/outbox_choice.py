"""Which events `requeue` and `discard` are to change."""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from outboxd.cli.arguments import count
from outboxd.cli.outbox_arguments import (
    add_author,
    add_common,
    add_filters,
    selection_of,
    target,
)
from outboxd.cli.outbox_list import LOOKED_SHORT
from outboxd.cli.parsing import UsageError

if TYPE_CHECKING:
    from outboxd.adapters.postgres.operations import Operations
    from outboxd.adapters.postgres.outbox_rows import OutboxRows
    from outboxd.core.outbox_standing import Row, Standing

MOST = 1_000_000
"""Events of one run. They are picked before anything is changed, so they are kept in memory."""


class NothingChosen(UsageError):
    """Neither ids nor filters say which events are meant, or both do."""


class Verb(NamedTuple):
    """What distinguishes the two commands."""

    name: str
    done: str
    then: str
    """What that means for later events of the same aggregates."""
    refusal: "Callable[[Standing], str | None]"
    act: "Callable[[Operations, Sequence[int]], list[int]]"


def add_choice(parser: argparse.ArgumentParser, states: Sequence[str]) -> None:
    parser.add_argument(
        "events", nargs="*", metavar="ID|SEQ", type=target, help="ids or seqs; or give filters"
    )
    add_filters(parser, states, "dead")
    parser.add_argument("--all", action="store_true", help="all events of the state")
    parser.add_argument("--limit", type=count, default=MOST, metavar="N", help="at most N events")
    add_author(parser)
    add_common(parser)


def require_choice(arguments: argparse.Namespace, verb: Verb) -> None:
    filters = (arguments.type, arguments.aggregate, arguments.older_than, arguments.state)
    filtered = arguments.all or any(each is not None for each in filters)
    if bool(arguments.events) == filtered:
        raise NothingChosen(
            f"{verb.name}: name events by id or seq, or give filters (--state, --type, "
            "--aggregate, --older-than), or --all; not both"
        )


def choice_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Which events were asked for, as the audit keeps it."""
    import msgspec

    from outboxd.core.outbox_filters import State

    if arguments.events:
        return {"events": [str(each) for each in arguments.events[:100]]}
    selection = msgspec.to_builtins(selection_of(arguments, State.DEAD))
    if arguments.limit != MOST:
        selection["limit"] = arguments.limit
    return dict(selection)


def picked(
    arguments: argparse.Namespace, rows: "OutboxRows", verb: Verb, now: float
) -> "tuple[list[Row], list[str]]":
    """The events to change, and why others that were named cannot be."""
    from outboxd.core.outbox_filters import State
    from outboxd.core.outbox_standing import standing

    if not arguments.events:
        listing = rows.listed(selection_of(arguments, State.DEAD), arguments.limit)
        if listing.looked_short:
            print(f"outboxd: {LOOKED_SHORT}", file=sys.stderr)
        chosen = [row for row in listing.rows if verb.refusal(standing(row, now)) is None]
        return chosen, []
    found = rows.found(arguments.events)
    known: set[object] = {row.seq for row in found} | {row.id for row in found}
    refused = [
        f"{each}: no event in the outbox has it"
        for each in arguments.events
        if (each if isinstance(each, int) else str(each)) not in known
    ]
    chosen = []
    for row in found:
        refusal = verb.refusal(standing(row, now))
        if refusal is None:
            chosen.append(row)
        else:
            refused.append(f"event {row.seq} ({row.id}) is left as it is: {refusal}")
    return chosen, refused

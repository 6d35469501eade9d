"""`outboxd outbox list`: events by state."""

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from outboxd.cli.arguments import count, seconds
from outboxd.cli.outbox_arguments import add_common, add_filters, opened, selection_of
from outboxd.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from outboxd.adapters.postgres.outbox_rows import Listing
    from outboxd.core.outbox_filters import Selection
    from outboxd.ports.outbox import Survey

STATES = ("pending", "failing", "stopped", "held", "blocked", "dead", "discarded", "published")

LOOKED_SHORT = (
    "only the oldest events of each of the 64 shares of the outbox, or the first millions of rows, "
    "were looked at; there may be more: narrow it with --aggregate, or repeat it later"
)

SCAN_SECONDS = 1.0
"""With what the rest of a listing takes, an answer within two seconds on a table of millions."""


def add_action(actions: Any) -> None:
    """Describe the action to argparse."""
    parser = actions.add_parser(
        "list",
        help="show events by state",
        description=(
            "Shows events of one state, the oldest first. pending: all that are still to be "
            "published, among them failing (tried again later), stopped (waiting for requeue or "
            "discard), held (no route) and blocked (behind a failing, stopped or held event of "
            "their aggregate). dead: given up. discarded: given up by an operator. published: the "
            "newest first."
        ),
        epilog="example: outboxd outbox list --state blocked --type 'order.*'",
    )
    add_filters(parser, STATES, "pending")
    parser.add_argument(
        "--limit", type=count, default=100, metavar="N", help="show at most N (default: 100)"
    )
    parser.add_argument(
        "--scan-seconds",
        type=seconds,
        default=SCAN_SECONDS,
        metavar="SECONDS",
        help=f"how long to look for events that match (default: {SCAN_SECONDS:g})",
    )
    add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Look and print."""
    from outboxd.adapters.postgres.outbox_counts import counts
    from outboxd.adapters.postgres.outbox_rows import OutboxRows
    from outboxd.core.outbox_filters import State, route_globs

    selection = selection_of(arguments, State.PENDING)
    end = time.monotonic() + arguments.scan_seconds
    with opened(arguments) as (settings, database):
        rows = OutboxRows(database, route_globs(settings))
        listing = rows.listed(selection, arguments.limit, lambda: time.monotonic() > end)
        totals = counts(database)
        show = _print_json if arguments.json else _print
        show(arguments, selection, listing, totals, database.now())
    if listing.looked_short:
        print(f"outboxd: {_why_short(time.monotonic() > end, arguments)}", file=sys.stderr)
    return ExitCode.OK


def _why_short(out_of_time: bool, arguments: argparse.Namespace) -> str:
    if not out_of_time:
        return LOOKED_SHORT
    return (
        f"the outbox was looked through for {arguments.scan_seconds:g} s, not to its end; there "
        "may be more: give --scan-seconds, or narrow it with --aggregate"
    )


def _print(
    arguments: argparse.Namespace,
    selection: "Selection",
    listing: "Listing",
    totals: "Survey",
    now: float,
) -> None:
    from outboxd.adapters.postgres.row_counts import COUNT_CAP, DEAD_CAP
    from outboxd.cli.outbox_output import print_row
    from outboxd.cli.wording import counted, lasting

    for row in listing.rows:
        print_row(row, now)
    shown = counted(len(listing.rows), f"{selection.state} event")
    first = "the first " if len(listing.rows) == arguments.limit else ""
    pending = counted(totals.pending, "event", cap=COUNT_CAP)
    oldest = totals.oldest_pending_seconds
    since = f", the oldest for {lasting(oldest)}" if totals.pending else ""
    dead = counted(totals.dead, "event", cap=DEAD_CAP)
    print(f"{first}{shown}; in all: {pending} pending{since}; {dead} dead", flush=True)


def _print_json(
    arguments: argparse.Namespace,
    selection: "Selection",
    listing: "Listing",
    totals: "Survey",
    now: float,
) -> None:
    from outboxd.adapters.postgres.row_counts import COUNT_CAP, DEAD_CAP
    from outboxd.cli.outbox_output import as_json, print_json

    print_json(
        {
            "state": selection.state,
            "limit": arguments.limit,
            "looked_short": listing.looked_short,
            "totals": {
                "pending": totals.pending,
                "pending_counted_up_to": COUNT_CAP,
                "oldest_pending_seconds": round(totals.oldest_pending_seconds),
                "dead": totals.dead,
                "dead_counted_up_to": DEAD_CAP,
            },
            "events": [as_json(row, now) for row in listing.rows],
        }
    )

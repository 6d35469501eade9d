"""`outboxd outbox`: shows what is in the outbox, and lets a person decide about it."""

from typing import Any

from outboxd.cli import outbox_audit, outbox_change, outbox_list, outbox_prune, outbox_show
from outboxd.cli.parsing import CommandParser


def add_parser(subparsers: Any) -> None:
    """Describe the command and its actions to argparse."""
    parser = subparsers.add_parser(
        "outbox",
        help="show events of the outbox, requeue, discard and prune them",
        description=(
            "Works on the table outbox_events. `list` and `show` only read. `requeue`, `discard` "
            "and `prune` ask first, and leave an entry in the audit, which `audit` lists."
        ),
        epilog="example: outboxd outbox list --state dead --config config/shop.toml",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True, parser_class=CommandParser)
    outbox_list.add_action(actions)
    outbox_show.add_action(actions)
    outbox_change.add_requeue(actions)
    outbox_change.add_discard(actions)
    outbox_prune.add_action(actions)
    outbox_audit.add_action(actions)

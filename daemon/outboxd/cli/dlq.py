"""`outboxd dlq`: shows the dead letters of a queue, sends them back, exports and purges them."""

from typing import Any

from outboxd.cli import dlq_export, dlq_list, dlq_purge, dlq_redrive, dlq_show
from outboxd.cli.parsing import CommandParser


def add_parser(subparsers: Any) -> None:
    """Describe the command and its actions to argparse."""
    parser = subparsers.add_parser(
        "dlq",
        help="show dead letters, send them back to their queue, export and purge them",
        description=(
            "Works on the dead-letter queue of a queue of [queues]. `list` and `show` tell why "
            "each letter is there; `redrive` sends letters back once the reason is gone; `export` "
            "writes them to a file, and `purge` deletes them. All but `show` take the same filters."
        ),
        epilog="example: outboxd dlq list payment-events --config config/shop.toml",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True, parser_class=CommandParser)
    dlq_list.add_action(actions)
    dlq_show.add_action(actions)
    dlq_redrive.add_action(actions)
    dlq_purge.add_action(actions)
    dlq_export.add_action(actions)

"""`outboxd outbox show`: one event, and what it waits for."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from outboxd.cli.outbox_arguments import add_common, opened, target
from outboxd.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from outboxd.core.outbox_standing import Row
    from outboxd.core.settings import Settings


def add_action(actions: Any) -> None:
    """Describe the action to argparse."""
    parser = actions.add_parser(
        "show",
        help="show one event, and what it waits for",
        description=(
            "Shows everything that the outbox knows of an event. Its payload and headers, which "
            "may hold personal data, only with --payload. Exits with 1 when there is no such event."
        ),
        epilog="example: outboxd outbox show 0197f3c2-6d7e-7a01-9c55-2f1b8a3e4d10",
    )
    parser.add_argument("event", metavar="ID|SEQ", type=target, help="its id, or its seq")
    parser.add_argument("--payload", action="store_true", help="show payload and headers as well")
    add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Look and print; several rows of one id, which nothing forbids, are all shown."""
    from outboxd.adapters.postgres.outbox_rows import OutboxRows
    from outboxd.cli.outbox_output import print_json
    from outboxd.core.outbox_filters import route_globs

    with opened(arguments) as (settings, database):
        rows = OutboxRows(database, route_globs(settings))
        found = rows.found([arguments.event])
        now = database.now()
        contents = [rows.content(row.seq) if arguments.payload else None for row in found]
    if arguments.json:
        print_json([_whole(*each, settings, now) for each in zip(found, contents, strict=True)])
    else:
        for row, content in zip(found, contents, strict=True):
            _print(row, content, settings, now)
    if not found:
        print(f"outboxd: {_not_found(arguments.event)}", file=sys.stderr)
    return ExitCode.OK if found else ExitCode.UNEXPECTED


def _print(row: "Row", content: tuple[str, str] | None, settings: "Settings", now: float) -> None:
    from outboxd.cli.outbox_output import print_row
    from outboxd.cli.wording import at

    print_row(row, now)
    print(f"    times     inserted {at(row.occurred_at)} UTC", end="")
    for name, when in _times(row):
        print(f", {name} {at(when)}", end="")
    print()
    if destinations := _destinations(row, settings):
        print(f"    goes to   {', '.join(destinations)}")
    if row.last_error and row.published_at is None:
        print(f"    whole error\n{_indented(row.last_error)}")
    if content is not None:
        print(f"    payload   {content[0]}\n    headers   {content[1]}")
    sys.stdout.flush()


def _whole(
    row: "Row", content: tuple[str, str] | None, settings: "Settings", now: float
) -> dict[str, Any]:
    import msgspec

    from outboxd.cli.outbox_output import as_json

    known = {**as_json(row, now), "destinations": _destinations(row, settings)}
    if content is not None:
        payload, headers = content
        known |= {
            "payload": msgspec.Raw(payload.encode()),
            "headers": msgspec.Raw(headers.encode()),
        }
    return known


def _destinations(row: "Row", settings: "Settings") -> list[str]:
    """Where the configuration sends it; none when nothing here can tell."""
    from outboxd.core.routes import RouteTable

    if settings.relay is None:
        return []
    route = RouteTable(settings.relay.routes).find(row.event_type, row.aggregate_type)
    return [] if route is None else list(route.to)


def _times(row: "Row") -> list[tuple[str, float]]:
    from outboxd.core.outbox_standing import FOREVER

    times = [
        ("given up", row.dead_at),
        ("next attempt", row.next_attempt_at),
        ("published", row.published_at),
    ]
    return [(name, when) for name, when in times if when is not None and when != FOREVER]


def _indented(text: str) -> str:
    from outboxd.cli.wording import line

    return "\n".join(f"        {line(each)}" for each in text.splitlines())


def _not_found(event: object) -> str:
    what = f"seq {event}" if isinstance(event, int) else f"the id {event}"
    return (
        f"no event in the outbox has {what}; published ones are deleted after the retention, and "
        "`outboxd where` asks the inbox and the dead-letter queues too"
    )

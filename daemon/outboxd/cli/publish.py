"""`outboxd publish`: stores one event in the outbox, by hand or from a script."""

import argparse
import math
import os
import sys
from typing import TYPE_CHECKING, Any
from uuid import UUID

from outboxd.cli.arguments import add_config_argument, add_json_argument
from outboxd.core.errors import OutboxdError, PublishRefused
from outboxd.core.exit_codes import ExitCode

if TYPE_CHECKING:
    import msgspec

    from outboxd.core.events import NewEvent


class UnusablePayload(OutboxdError):
    """What came as the payload on standard input is no JSON."""


STDIN = "-"


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "publish",
        help="store one event in the outbox",
        description=(
            "Stores one event in the outbox, in a transaction of its own, and prints its id. The "
            "relay publishes it from there. Give --id to make a repetition harmless: handlers with "
            "an inbox take effect once for each id."
        ),
        epilog=(
            "example: outboxd publish payment.succeeded --aggregate order:42 "
            """--payload '{"amount": 1999}'"""
        ),
    )
    parser.add_argument("type", metavar="TYPE", type=_event_type, help="the event type")
    parser.add_argument(
        "--aggregate",
        required=True,
        type=_aggregate,
        metavar="TYPE:ID",
        help="what the event is about; events of one aggregate stay in order",
    )
    parser.add_argument(
        "--payload",
        required=True,
        type=_payload,
        metavar="JSON",
        help="the payload, or - to read it from stdin",
    )
    parser.add_argument("--id", type=_uuid, metavar="UUID", help="the event's id (default: new)")
    parser.add_argument(
        "--header",
        action="append",
        default=[],
        type=_header,
        metavar="KEY=VALUE",
        help="a header; may be repeated",
    )
    parser.add_argument(
        "--ordered",
        action="store_true",
        help="wait for other writers of the aggregate that publish with `ordered` too",
    )
    add_config_argument(parser)
    add_json_argument(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Insert, commit, print the id."""
    import psycopg

    from outboxd.adapters.configuration import load_settings
    from outboxd.adapters.conninfo import database_errors, database_of
    from outboxd.producer import publish

    database = database_of(load_settings(arguments.config, os.environ))
    event = _event(arguments)
    timeout = math.ceil(database.connect_timeout_seconds)  # libpq knows whole seconds
    with (
        database_errors(database.url, "publishing"),
        psycopg.connect(database.url, connect_timeout=timeout) as connection,
    ):
        publish(connection, event, schema=database.schema, ordered=arguments.ordered)
    _report(arguments.json, event)
    return ExitCode.OK


def _event(arguments: argparse.Namespace) -> "NewEvent":
    from outboxd.core.events import NewEvent, new_event_id

    aggregate_type, aggregate_id = arguments.aggregate
    return NewEvent(
        id=arguments.id or new_event_id(),
        type=arguments.type,
        aggregate_type=aggregate_type,
        aggregate_id=aggregate_id,
        payload=_piped() if arguments.payload == STDIN else arguments.payload,
        headers=dict(arguments.header),
    )


def _piped() -> "msgspec.Raw":
    return _json(sys.stdin.buffer.read())


def _json(text: bytes) -> "msgspec.Raw":
    """JSON as it was written: decoding and encoding it would round long decimal numbers."""
    import msgspec

    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnusablePayload(f"the payload is no JSON: {error}") from None
    return msgspec.Raw(text)


def _report(as_json: bool, event: "NewEvent") -> None:
    if as_json:
        import msgspec

        print(msgspec.json.encode({"id": event.id, "type": event.type}).decode())
    else:
        print(event.id)


def _payload(text: str) -> "msgspec.Raw | str":
    if text == STDIN:
        return STDIN
    try:
        return _json(text.encode(errors="surrogateescape"))
    except UnusablePayload as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _event_type(text: str) -> str:
    from outboxd.producer import check_event_type

    try:
        check_event_type(text)
    except PublishRefused as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _aggregate(text: str) -> tuple[str, str]:
    kind, _, identity = text.partition(":")
    if not kind or not identity:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form TYPE:ID, as order:42 is")
    return kind, identity


def _header(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not key or not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form KEY=VALUE")
    return key, value


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no UUID") from None

"""Types, aggregates and headers: what messages can carry and globs can match."""

import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from outboxd.core.errors import PublishRefused
from outboxd.core.outgoing import ILLEGAL
from outboxd.producer.limits import AGGREGATE_CHARACTERS, TYPE_CHARACTERS

_BLANK_OR_CONTROL = re.compile(r"[\s\x00-\x1f\x7f-\x9f]")


def check_event_type(value: str) -> None:
    """Raises PublishRefused, with what is allowed, for a text that cannot be an event's type.

    Routes and handlers match types by globs, in which a blank that nobody sees matches nothing.
    """
    _check_name("type", value, TYPE_CHARACTERS)
    if (found := _BLANK_OR_CONTROL.search(value)) is not None:
        raise PublishRefused(
            f"type holds {found.group()!r}, and may hold no white space and no control character: "
            f"{value!r}"
        )


def check_aggregate(aggregate_type: str, aggregate_id: str) -> None:
    """Raises PublishRefused for a name that the table or the messages have no room for."""
    _check_name("aggregate_type", aggregate_type, AGGREGATE_CHARACTERS)
    _check_name("aggregate_id", aggregate_id, AGGREGATE_CHARACTERS)


def check_key(key: str) -> None:
    """The same for the key of a job, which becomes its aggregate."""
    _check_name("key", key, AGGREGATE_CHARACTERS)


def check_id(value: UUID) -> None:
    """Raises PublishRefused for the text of an id: PostgreSQL would take it, the caller would get
    it back, and it would compare unequal to the id of the event that a handler sees."""
    if not isinstance(value, UUID):
        raise PublishRefused(f"id must be a uuid.UUID, and is {value!r:.300}; give UUID(...)")


def check_headers(headers: object) -> None:
    """Raises PublishRefused unless they are texts by name."""
    if not isinstance(headers, Mapping) or not all(
        isinstance(part, str) for pair in headers.items() for part in pair
    ):
        raise PublishRefused(
            f"headers must be texts by name, as in {{'tenant': '7'}}, and are {headers!r:.300}"
        )


def _check_name(field: str, value: Any, most: int) -> None:
    if not isinstance(value, str):
        raise PublishRefused(
            f"{field} must be a text, and is the {type(value).__name__} {value!r:.300}; "
            "give str(...) of it"
        )
    if not 1 <= len(value) <= most:
        raise PublishRefused(
            f"{field} must be a text of 1 to {most} characters, and is {value!r:.300}"
        )
    if (illegal := ILLEGAL.search(value)) is not None:
        raise PublishRefused(
            f"{field} holds {illegal.group()!r}, which messages cannot carry: {value!r}; "
            "leave it out, or encode it"
        )

"""Rules between settings: what each setting allows by itself, but which cannot work together.

Every problem says what would go wrong. Rules of one setting alone are in its type.
"""

import re
from collections.abc import Iterator

import msgspec

from outboxd.core.destination_rules import destination_problems
from outboxd.core.inbox_rules import inbox_problems
from outboxd.core.places import Place
from outboxd.core.queue_rules import (
    dead_letter_problems,
    handler_problems,
    queue_problems,
    shared_queue_problems,
)
from outboxd.core.relay_rules import relay_problems
from outboxd.core.settings import Settings

MAX_ENCODED_BYTES = 1 << 19
"""Children get the settings in one frame of at most 1 MiB, beside other things."""

_ENDPOINT = re.compile(
    r"https?://(?:[^/@]*@)?"
    r"(?:(?!-)[A-Za-z0-9-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*|\[[0-9A-Fa-f:.]+\])"
    r"(?::[0-9]+)?(?:/\S*)?\Z"
)
"""As botocore.utils.is_valid_endpoint_url: an underscore is a ValueError of the client's."""

_CONNINFO = re.compile(r"\s*\w+\s*=")


def broken_rules(settings: Settings) -> list[str]:
    """One line for each broken rule, in the order of the file's sections."""
    return [
        *_purpose(settings),
        *_database(settings),
        *_aws(settings),
        *_supervisor(settings),
        *relay_problems(settings),
        *destination_problems(settings),
        *queue_problems(settings),
        *shared_queue_problems(settings),
        *dead_letter_problems(settings),
        *handler_problems(settings),
        *inbox_problems(settings),
        *_size(settings),
    ]


def _purpose(settings: Settings) -> Iterator[str]:
    if settings.relay is None and not settings.queues:
        yield (
            "neither [relay] nor [queues] is configured, so there is nothing to do; "
            "add [relay] with routes, or [queues.<name>] with handlers"
        )


def _database(settings: Settings) -> Iterator[str]:
    needing = [
        f"{Place('queues').subtable(queue)} {handler.name!r}"
        for queue, section in settings.queues.items()
        for handler in section.handlers
        if handler.inbox != "off"
    ]
    if settings.database is not None:
        yield from _connection_string(settings.database.url)
        if settings.database.direct_url is not None:
            for problem in _connection_string(settings.database.direct_url):
                yield problem.replace("[database] url", "[database] direct_url")
    elif settings.relay is not None:
        yield "[database]: missing; the relay reads its events from there"
    elif needing:
        others = f" and {len(needing) - 1} more" if len(needing) > 1 else ""
        yield (
            f"[database]: missing; handler {needing[0]}{others} keeps its inbox there; "
            'add it, or set inbox = "off" and bear that a message may take effect twice'
        )


def _connection_string(url: str) -> Iterator[str]:
    """Not shown, for it holds a password; an error of libpq would quote parts of it."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme.startswith(("postgresql+", "postgres+")):
        yield (
            "[database] url: names an SQLAlchemy driver; "
            "write postgresql:// without the +driver (the url is not shown)"
        )
    elif separator and scheme in ("postgresql", "postgres"):
        authority, _, path = rest.partition("?")[0].partition("/")
        if authority.count("@") > 1 or "@" in path:
            # libpq takes the rest of the password for a host, and tells the world that host's name.
            yield (
                "[database] url: has an @ or a / in its user name or password; "
                "write %40 or %2F for it (the url is not shown)"
            )
    elif separator or not _CONNINFO.match(url):
        yield (
            "[database] url: expected postgresql://user:password@host:port/database "
            "or key=value pairs of libpq (the url is not shown)"
        )


def _aws(settings: Settings) -> Iterator[str]:
    endpoint = settings.aws.endpoint_url
    if endpoint is not None and not _ENDPOINT.match(endpoint):
        yield (
            "[aws] endpoint_url: expected http://host:port or https://host, and the AWS SDK wants "
            "the host of letters, digits, hyphens and dots"
        )


def _supervisor(settings: Settings) -> Iterator[str]:
    it = settings.supervisor
    if it.escalation_seconds >= it.grace_seconds:
        yield (
            f"[supervisor] escalation_seconds: {it.escalation_seconds:g} s of the "
            f"{it.grace_seconds:g} s of grace_seconds are kept for killing what does not stop, so "
            "nothing is left to stop in; lower it or raise grace_seconds"
        )
    if it.heartbeat_interval_seconds * 3 > it.heartbeat_deadline_seconds:
        yield (
            "[supervisor] heartbeat_deadline_seconds: must be at least 3 x "
            f"heartbeat_interval_seconds ({it.heartbeat_interval_seconds * 3:g} s), or one late "
            "heartbeat kills a healthy child"
        )
    if it.backoff_first_seconds > it.backoff_cap_seconds:
        yield (
            f"[supervisor] backoff_first_seconds: {it.backoff_first_seconds:g} is above "
            f"backoff_cap_seconds ({it.backoff_cap_seconds:g})"
        )


def _size(settings: Settings) -> Iterator[str]:
    encoded = len(msgspec.msgpack.encode(settings))
    if encoded > MAX_ENCODED_BYTES:
        yield (
            f"the settings take {encoded} bytes, which is more than the {MAX_ENCODED_BYTES} bytes "
            "that a child is told at its start; split the queues into several configurations"
        )

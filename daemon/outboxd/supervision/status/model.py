"""The document behind the status page: /status.json. Its names are stable; names may be added.

Seconds are seconds, bytes are bytes, rates are per second and over about the last minute, and what
is not known is null, never 0.
"""

from typing import Literal, TypeAlias

from msgspec import Struct

Health: TypeAlias = Literal["healthy", "degraded", "unhealthy", "starting", "stopping"]
Level: TypeAlias = Literal["critical", "warning", "note"]
History: TypeAlias = tuple[float | None, ...]
"""One value for each step of the last 15 minutes, the oldest first; fewer in a young daemon."""


class Problem(Struct, frozen=True):
    """Something that a person should know. Notes leave the health as it is. `look` is a command
    that tells more, or empty."""

    level: Level
    text: str
    look: str = ""


class Child(Struct, frozen=True, kw_only=True):
    """One slot; what its process would tell is null while there is none.

    `restarts` counts all, `failures` those that nobody planned; `recent_failures` those of the
    last 15 minutes.
    """

    name: str
    kind: str
    state: str
    pid: int | None
    up_seconds: float | None
    restarts: int
    failures: int | None
    recent_failures: int | None
    rss_bytes: int | None
    heartbeat_age_seconds: float | None
    in_flight: int | None


class Destination(Struct, frozen=True, kw_only=True):
    """Where events are published to; `up` is false from a failed call until the next good one."""

    name: str
    up: bool | None
    published_per_second: float | None


class OutboxHistory(Struct, frozen=True, kw_only=True):
    """The last 15 minutes of the outbox."""

    pending: History
    oldest_seconds: History
    published_per_second: History


class Outbox(Struct, frozen=True, kw_only=True):
    """The backlog, as it was counted `counted_seconds_ago`; counts end at 100,001 and 10,001."""

    pending: int | None
    oldest_seconds: float | None
    dead: int | None
    counted_seconds_ago: float | None
    published_per_second: float | None
    publish_p95_seconds: float | None
    recent_failures: int | None
    database_failures_per_second: float | None
    blocked_aggregates: int | None
    unrouted_aggregates: int | None
    destinations: tuple[Destination, ...]
    history: OutboxHistory


class Handler(Struct, frozen=True, kw_only=True):
    """One handler of a queue; durations are of its calls, of the last minute.
    `failed_share` is what part of the last minute's messages it did not handle, from 0 to 1."""

    queue: str
    name: str
    running: int | None
    handled_per_second: float | None
    p95_seconds: float | None
    failed_share: float | None
    recent_retries: int | None
    recent_dead_letters: int | None


class QueueHistory(Struct, frozen=True, kw_only=True):
    """The last 15 minutes of a queue."""

    visible: History
    handled_per_second: History
    p95_seconds: History


class Queue(Struct, frozen=True, kw_only=True):
    """One queue that this daemon consumes. `visible`, `in_flight`, `delayed` and `dead_letters` are
    approximate counts of SQS, made `counted_seconds_ago`; `running` of `concurrency` slots are
    taken here; latency runs from the event to its effect. Queues may have the same
    `dead_letter_queue`, and then the same letters."""

    name: str
    dead_letter_queue: str
    paused: bool
    blocked_by: tuple[str, ...]
    visible: int | None
    in_flight: int | None
    delayed: int | None
    dead_letters: int | None
    counted_seconds_ago: float | None
    running: int | None
    concurrency: int | None
    received_per_second: float | None
    handled_per_second: float | None
    p50_seconds: float | None
    p95_seconds: float | None
    recent_retries: int | None
    recent_dead_letters: int | None
    receive_errors_per_second: float | None
    history: QueueHistory


class Totals(Struct, frozen=True, kw_only=True):
    """All queues together; null as soon as one of them is not known."""

    visible: int | None
    in_flight: int | None
    dead_letters: int | None
    handled_per_second: float | None
    recent_retries: int | None
    recent_dead_letters: int | None
    failures: int | None


class Trouble(Struct, frozen=True, kw_only=True):
    """An error that was logged by the supervisor, or counted by a child: what, how often since it
    was first seen, when last (Unix time), and what tells more."""

    at: float
    seconds_ago: float
    level: Literal["warning", "error"]
    source: str
    text: str
    count: int
    look: str = ""


class Status(Struct, frozen=True, kw_only=True):
    """Everything, at one moment; `at` is Unix time. `recent_…` means the last 15 minutes, or all
    since the start if that was later: `observed_seconds`, of 900 at most."""

    at: float
    host: str
    version: str
    health: Health
    summary: str
    up_seconds: float
    observed_seconds: float
    step_seconds: float
    problems: tuple[Problem, ...]
    totals: Totals
    children: tuple[Child, ...]
    outbox: Outbox | None
    queues: tuple[Queue, ...]
    handlers: tuple[Handler, ...]
    errors: tuple[Trouble, ...]

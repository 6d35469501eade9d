"""[queues] and [inbox]: what is consumed, by which handlers, and how that is remembered."""

from typing import Annotated, Literal

from msgspec import Meta, field

from outboxd.core.settings.kinds import Count, Delay, EventGlob, QueueName, Seconds
from outboxd.core.settings.section import Section

HandlerName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_.:/-]{1,200}\Z",
        description="a name of 1 to 200 letters, digits and any of _ . : / -",
    ),
]
HandlerPath = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*\Z",
        description='"package.module:function"',
    ),
]
RetentionDays = Annotated[
    float,
    Meta(ge=1 / 1440, le=14, description="a number of days from 1/1440 (a minute) to 14"),
]

Options = Annotated[dict[str, str | int | float | bool], Meta(extra={"hidden": True})]
"""A handler's own settings; hidden, since what outboxd does not know may be a key to something."""

InboxMode = Literal["transaction", "after", "own", "off"]

FIFO_SUFFIX = ".fifo"


def is_fifo(sqs_name: str) -> bool:
    """Whether a queue of that name in SQS is a FIFO queue: only the name of one ends like this, and
    every one's does (CreateQueue, QueueName)."""
    return sqs_name.endswith(FIFO_SUFFIX)


class BackoffSettings(Section, frozen=True, kw_only=True):
    """How long a message waits after a failed attempt: `first_seconds`, grown by `factor` each time
    up to `cap_seconds` (a factor of 1 keeps it fixed); or the listed delays, the last one repeated.

    `jitter` leaves nothing, half or all of each delay to chance.
    """

    first_seconds: Delay = 2.0
    factor: Annotated[float, Meta(ge=1, le=10)] = 2.0
    cap_seconds: Delay = 300.0
    delays_seconds: Annotated[tuple[Delay, ...], Meta(max_length=100)] = ()
    jitter: Literal["none", "equal", "full"] = "equal"


class HandlerSettings(Section, frozen=True, kw_only=True):
    """One handler of one queue. `name` is the key of its inbox marks: keep it when code moves.

    With `batch` above 1 the handler is given a list of up to so many events, which have waited for
    each other for at most `batch_wait_seconds`.
    """

    event: EventGlob
    handler: HandlerPath
    name: HandlerName
    inbox: InboxMode = "transaction"
    timeout_seconds: Annotated[float, Meta(gt=0, le=43200)] = 30.0
    max_attempts: Count | None = None
    backoff: BackoffSettings | None = None
    batch: Annotated[int, Meta(ge=1, le=1000)] = 1
    batch_wait_seconds: Annotated[float, Meta(ge=0, le=60)] = 0.5
    options: Options = field(default_factory=dict)


class RecycleSettings(Section, frozen=True, kw_only=True):
    """When a process of the pool is replaced by a fresh one, which helps against libraries that
    leak. Messages and age are jittered by a tenth, so that processes do not go at the same time."""

    max_messages: Count | None = None
    max_age_seconds: Seconds | None = None
    max_rss_bytes: Annotated[int, Meta(ge=64 * 1024**2, le=1 << 50)] | None = None


class QueueSettings(Section, frozen=True, kw_only=True):
    """A queue, and the pool of processes that consumes it. Without handlers it has none."""

    queue_name: QueueName | None = None
    processes: Annotated[int, Meta(ge=1, le=64)] = 1
    concurrency: Annotated[int, Meta(ge=1, le=1000)] = 10
    visibility_seconds: Annotated[int, Meta(ge=2, le=43200)] = 30
    wait_seconds: Annotated[int, Meta(ge=0, le=20)] = 10
    max_attempts: Count = 5
    dead_letter: QueueName | None = None
    on_unknown_type: Literal["dead_letter", "retry", "drop"] = "dead_letter"
    backoff: BackoffSettings = BackoffSettings()
    max_per_second: Annotated[float, Meta(gt=0, le=100_000)] | None = None
    retention_days: RetentionDays = 4.0
    dead_letter_retention_days: RetentionDays = 14.0
    fair_groups: bool = False
    max_receive_count: Annotated[int, Meta(ge=1, le=1000)] = 100
    recycle: RecycleSettings = RecycleSettings()
    handlers: tuple[HandlerSettings, ...] = ()


class InboxSettings(Section, frozen=True, kw_only=True):
    """How long it is remembered which handlers are done with which events.

    The default is the longest that SQS keeps a message and then a dead letter, 14 days each.
    """

    retention_days: Annotated[
        float,
        Meta(
            ge=1 / 1440,
            le=36_500,
            description="a number of days from 1/1440 (a minute) to 36500",
        ),
    ] = 28.0
    allow_shorter_retention: bool = False

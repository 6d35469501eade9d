"""The configuration as types: a unit in every name, a default on every line, a rule in every type.

How a file becomes these types is `adapters.configuration`; rules between settings are
`core.settings_rules`.
"""

from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct
from msgspec.structs import fields

# Every range is finite: a sleep of `inf` seconds and an integer of 100 bits are valid TOML, and
# each would only fail later, in a child. Patterns end in \Z because `$` lets a last newline pass.
Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
Delay = Annotated[float, Meta(gt=0, le=43_200)]
"""How long a message may be hidden: SQS allows twelve hours, counted from its receive."""
Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Port = Annotated[int, Meta(ge=0, le=65535)]
QueueName = Annotated[
    str,
    Meta(
        pattern=r"^(?:[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo)\Z",
        description="a queue name of 1 to 80 letters, digits, hyphens and underscores",
    ),
]
EventGlob = Annotated[str, Meta(min_length=1, max_length=255)]
SchemaName = Annotated[
    str,
    Meta(
        pattern=r"^[a-z_][a-z0-9_]{0,62}\Z",
        description="a schema name of 1 to 63 lower-case letters, digits and underscores",
    ),
]
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
SocketPath = Annotated[
    str,
    # The kernel's limit for the path of a Unix socket is 107 bytes (unix(7)).
    Meta(pattern=r"^/[!-~]{1,100}\Z", description="an absolute path of at most 101 characters"),
]
RetentionDays = Annotated[
    float,
    Meta(ge=1 / 1440, le=14, description="a number of days from 1/1440 (a minute) to 14"),
]
Secret = Annotated[str, Meta(min_length=1, extra={"secret": True, "hidden": True})]
"""A setting that may also be given as `<name>_file`, and that no log, error or page ever shows."""

Options = Annotated[dict[str, str | int | float | bool], Meta(extra={"hidden": True})]
"""A handler's own settings; hidden, since what outboxd does not know may be a key to something."""

InboxMode = Literal["transaction", "after", "own", "off"]

Envelope = Literal["event", "job", "cloudevents"]
"""The form in which an event leaves: docs/envelopes.md."""

TopicName = Annotated[
    str,
    Meta(
        pattern=r"^(?:[A-Za-z0-9_-]{1,256}|[A-Za-z0-9_-]{1,251}\.fifo)\Z",
        description="a topic name of 1 to 256 letters, digits, hyphens and underscores",
    ),
]
TopicArn = Annotated[
    str,
    Meta(
        pattern=r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}(?:\.fifo)?\Z",
        description='the ARN of an SNS topic, as "arn:aws:sns:us-east-1:111122223333:orders"',
    ),
]
BusName = Annotated[
    str,
    Meta(
        pattern=r"^[/._A-Za-z0-9-]{1,256}\Z",
        description="a bus name of 1 to 256 letters, digits and any of . / _ -",
    ),
]
RuleName = Annotated[
    str,
    Meta(
        pattern=r"^[._A-Za-z0-9-]{1,64}\Z",
        description="a rule name of 1 to 64 letters, digits and any of . _ -",
    ),
]
EventSource = Annotated[
    str,
    Meta(
        pattern=r"^(?!aws\.)[A-Za-z0-9._/:-]{1,256}\Z",
        description="an event source of 1 to 256 letters, digits and any of . _ / : -, which does "
        'not begin with "aws."',
    ),
]
SourceReference = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9._~:/?#@!$&'()*+,;=%-]{1,256}\Z",
        description="a URI or a path, as CloudEvents want for their source",
    ),
]

Ordering = Literal["aggregate", "none"]
"""Whether the events of an aggregate leave one after another, or as they come."""

OnExhausted = Literal["skip", "block"]
"""What becomes of an event that is refused or out of attempts: it is dead and its aggregate goes
on, or it stays first in its aggregate's line until an operator decides."""

FIFO_SUFFIX = ".fifo"


def is_fifo(sqs_name: str) -> bool:
    """Whether a queue of that name in SQS is a FIFO queue: only the name of one ends like this, and
    every one's does (CreateQueue, QueueName)."""
    return sqs_name.endswith(FIFO_SUFFIX)


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the configuration file; its repr hides what is secret."""

    def __repr__(self) -> str:
        shown = (
            f"{field.name}={'***' if hidden(field.type) else repr(getattr(self, field.name))}"
            for field in fields(self)
        )
        return f"{type(self).__name__}({', '.join(shown)})"


def hidden(annotation: Any) -> bool:
    """Whether a setting of this type must not be shown."""
    return _marked(annotation, "hidden")


def secret(annotation: Any) -> bool:
    """Whether a setting of this type may be given as a file of its own."""
    return _marked(annotation, "secret")


def _marked(annotation: Any, mark: str) -> bool:
    return any(
        isinstance(part, Meta) and (part.extra or {}).get(mark, False)
        for part in get_args(annotation)
    )


class DatabaseSettings(Section, frozen=True, kw_only=True):
    """Where PostgreSQL is; `url` is a connection URI or a libpq conninfo string."""

    url: Secret
    schema: SchemaName = "outboxd"
    connect_timeout_seconds: Seconds = 5.0


class AwsSettings(Section, frozen=True, kw_only=True):
    """Where AWS is. Credentials come from the AWS SDK's own chain, never from this file."""

    region: Annotated[str, Meta(min_length=1)] = "us-east-1"
    endpoint_url: str | None = None
    connect_timeout_seconds: Seconds = 2.0
    read_timeout_seconds: Seconds = 5.0


class HttpSettings(Section, frozen=True, kw_only=True):
    """The address of /metrics, /healthz and /readyz; port 0 takes a free one."""

    host: Annotated[str, Meta(min_length=1)] = "127.0.0.1"
    port: Port = 9464


class SupervisorSettings(Section, frozen=True, kw_only=True):
    """How children are started, watched and stopped."""

    grace_seconds: Seconds = 25.0
    escalation_seconds: Seconds = 5.0
    start_deadline_seconds: Seconds = 60.0
    heartbeat_deadline_seconds: Seconds = 10.0
    heartbeat_interval_seconds: Seconds = 2.0
    metrics_interval_seconds: Seconds = 5.0
    failed_starts: Count = 3
    crashes: Count = 5
    crash_window_seconds: Seconds = 600.0
    backoff_first_seconds: Seconds = 0.5
    backoff_cap_seconds: Seconds = 30.0
    failed_retry_seconds: Seconds = 60.0
    control_socket: SocketPath | None = None


class LoggingSettings(Section, frozen=True, kw_only=True):
    """One line per fact on standard error."""

    format: Literal["json", "text"] = "json"
    level: Literal["debug", "info", "warning", "error"] = "info"


class RouteSettings(Section, frozen=True, kw_only=True):
    """Events whose type matches the glob go to every destination of `to`, such as
    "sqs:<queue>"; core.destinations says what else there is."""

    events: EventGlob
    to: Annotated[tuple[str, ...], Meta(min_length=1, max_length=16)]
    aggregate_type: EventGlob = "*"
    envelope: Envelope = "event"
    ordering: Ordering = "aggregate"
    on_exhausted: OnExhausted = "skip"


class RelaySettings(Section, frozen=True, kw_only=True):
    """How the outbox is read, published and kept."""

    routes: tuple[RouteSettings, ...] = ()
    on_unrouted: Literal["hold", "dead", "drop"] = "hold"
    cloudevents_source: SourceReference = "outboxd"
    retention_days: Annotated[float, Meta(ge=0, le=36_500)] = 7.0
    poll_min_seconds: Seconds = 0.02
    poll_max_seconds: Seconds = 1.0
    lease_seconds: Seconds = 15.0
    renew_seconds: Seconds = 3.0
    read_per_bucket: Annotated[int, Meta(ge=1, le=10_000)] = 20
    packs_in_flight: Annotated[int, Meta(ge=1, le=64)] = 8
    unsettled_limit: Annotated[int, Meta(ge=10, le=1_000_000)] = 500
    max_attempts: Count = 20
    backoff_first_seconds: Seconds = 0.5
    backoff_cap_seconds: Seconds = 60.0


class SubscriptionSettings(Section, frozen=True, kw_only=True):
    """A queue that a topic is to be fanned out to: all events, or those that a glob of `events`
    matches and that the filter policy in `filter` lets through."""

    queue: str
    raw: bool = True
    events: Annotated[tuple[EventGlob, ...], Meta(max_length=100)] = ()
    filter: Annotated[str, Meta(min_length=2, max_length=256_000)] | None = None
    filter_scope: Literal["attributes", "body"] = "attributes"


class SnsSettings(Section, frozen=True, kw_only=True):
    """A topic, by the name of its table unless another name or an ARN is given."""

    topic_name: TopicName | None = None
    arn: TopicArn | None = None
    fair_groups: bool = False
    subscriptions: tuple[SubscriptionSettings, ...] = ()


class RuleSettings(Section, frozen=True, kw_only=True):
    """A rule on a bus: what matches one of the globs goes to every queue of `to`."""

    name: RuleName
    to: Annotated[tuple[str, ...], Meta(min_length=1, max_length=5)]
    events: Annotated[tuple[EventGlob, ...], Meta(min_length=1, max_length=100)] = ("*",)


class EventBridgeSettings(Section, frozen=True, kw_only=True):
    """A bus, by the name of its table unless another name is given, and what events on it say of
    where they come from."""

    source: EventSource
    bus_name: BusName | None = None
    rules: tuple[RuleSettings, ...] = ()


class DestinationsSettings(Section, frozen=True, kw_only=True):
    """Where else than to queues events are published to."""

    sns: dict[TopicName, SnsSettings] = {}
    eventbridge: dict[BusName, EventBridgeSettings] = {}


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
    options: Options = {}


class QueueSettings(Section, frozen=True, kw_only=True):
    """One queue and, if it has handlers, the pool that consumes it."""

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
    handlers: tuple[HandlerSettings, ...] = ()


class InboxSettings(Section, frozen=True, kw_only=True):
    """How long it is remembered which handlers are done with which events.

    The default is the longest that SQS keeps a message and then a dead letter, 14 days each.
    """

    retention_days: Annotated[float, Meta(ge=1 / 1440, le=36_500)] = 28.0
    allow_shorter_retention: bool = False


class Settings(Section, frozen=True, kw_only=True):
    """The whole configuration file, decoded, its references resolved."""

    import_path: tuple[str, ...] = ()
    database: DatabaseSettings | None = None
    aws: AwsSettings = AwsSettings()
    http: HttpSettings = HttpSettings()
    supervisor: SupervisorSettings = SupervisorSettings()
    logging: LoggingSettings = LoggingSettings()
    relay: RelaySettings | None = None
    destinations: DestinationsSettings = DestinationsSettings()
    inbox: InboxSettings = InboxSettings()
    queues: dict[QueueName, QueueSettings] = {}

    @property
    def consumed(self) -> tuple[str, ...]:
        """The queues that have a pool here; one without handlers is only published to."""
        return tuple(name for name, queue in self.queues.items() if queue.handlers)

    def sqs_queue_name(self, queue: str) -> str:
        """The name that SQS knows the queue by: the table's own name unless one is given."""
        return self.queues[queue].queue_name or queue

    def dead_letter_name(self, queue: str) -> str:
        """The name of the configured queue's dead-letter queue in SQS, which by default is of the
        queue's own type: SQS wants a FIFO one for a FIFO queue."""
        if given := self.queues[queue].dead_letter:
            return given
        name = self.sqs_queue_name(queue)
        stem = name.removesuffix(FIFO_SUFFIX)
        return f"{stem}-dlq{FIFO_SUFFIX}" if is_fifo(name) else f"{name}-dlq"

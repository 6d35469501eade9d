"""The configuration as types: a unit in every name, a default on every line, a rule in every type.

How a file becomes these types is `adapters.configuration`; rules between settings are
`core.settings_rules`.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

Seconds = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]
Port = Annotated[int, Meta(ge=0, le=65535)]
QueueName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,80}$|^[A-Za-z0-9_-]{1,75}\.fifo$")]
EventGlob = Annotated[str, Meta(min_length=1, max_length=255)]
SchemaName = Annotated[str, Meta(pattern=r"^[a-z_][a-z0-9_]{0,62}$")]
Secret = Annotated[str, Meta(extra={"secret": True})]
"""A setting that may also be given as `<name>_file`, and that no log, error or page ever shows."""

InboxMode = Literal["transaction", "after", "off"]


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the configuration file."""


class DatabaseSettings(Section, frozen=True, kw_only=True):
    """Where PostgreSQL is; `url` is a connection URI or a libpq conninfo string."""

    url: Secret
    schema: SchemaName = "outboxd"
    connect_timeout_seconds: Seconds = 5.0


class AwsSettings(Section, frozen=True, kw_only=True):
    """Where SQS is. Credentials come from the AWS SDK's own chain, never from this file."""

    region: str = "us-east-1"
    endpoint_url: str | None = None
    connect_timeout_seconds: Seconds = 2.0
    read_timeout_seconds: Seconds = 5.0


class HttpSettings(Section, frozen=True, kw_only=True):
    """The address of /metrics, /healthz and /readyz; port 0 takes a free one."""

    host: str = "127.0.0.1"
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


class LoggingSettings(Section, frozen=True, kw_only=True):
    """One line per fact on standard error."""

    format: Literal["json", "text"] = "json"
    level: Literal["debug", "info", "warning", "error"] = "info"


class RouteSettings(Section, frozen=True, kw_only=True):
    """Events whose type matches the glob go to every destination of `to` ("sqs:<queue>")."""

    events: EventGlob
    to: Annotated[tuple[str, ...], Meta(min_length=1, max_length=16)]
    aggregate_type: EventGlob = "*"
    envelope: Literal["event", "job"] = "event"


class RelaySettings(Section, frozen=True, kw_only=True):
    """How the outbox is read, published and kept."""

    routes: tuple[RouteSettings, ...] = ()
    on_unrouted: Literal["hold", "dead", "drop"] = "hold"
    retention_days: Annotated[float, Meta(ge=0)] = 7.0
    poll_min_seconds: Seconds = 0.02
    poll_max_seconds: Seconds = 1.0
    lease_seconds: Seconds = 15.0
    renew_seconds: Seconds = 3.0
    read_per_bucket: Count = 20
    packs_in_flight: Annotated[int, Meta(ge=1, le=64)] = 8
    unsettled_limit: Annotated[int, Meta(ge=10)] = 500
    max_attempts: Count = 20
    backoff_first_seconds: Seconds = 0.5
    backoff_cap_seconds: Seconds = 60.0


class HandlerSettings(Section, frozen=True, kw_only=True):
    """One handler of one queue. `name` is the key of its inbox marks: keep it when code moves."""

    event: EventGlob
    handler: Annotated[str, Meta(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$")]
    name: Annotated[str, Meta(min_length=1, max_length=200)]
    inbox: InboxMode = "transaction"
    timeout_seconds: Annotated[float, Meta(gt=0, le=43200)] = 30.0
    max_attempts: Count | None = None
    options: dict[str, str | int | float | bool] = {}


class QueueSettings(Section, frozen=True, kw_only=True):
    """One queue and the pool that consumes it."""

    queue_name: QueueName | None = None
    processes: Annotated[int, Meta(ge=1, le=64)] = 1
    concurrency: Annotated[int, Meta(ge=1, le=1000)] = 10
    visibility_seconds: Annotated[int, Meta(ge=2, le=43200)] = 30
    wait_seconds: Annotated[int, Meta(ge=0, le=20)] = 10
    max_attempts: Count = 5
    dead_letter: QueueName | None = None
    on_unknown_type: Literal["dead_letter", "retry", "drop"] = "dead_letter"
    backoff_first_seconds: Seconds = 2.0
    backoff_cap_seconds: Annotated[float, Meta(gt=0, le=43200)] = 300.0
    retention_days: Annotated[float, Meta(ge=1 / 1440, le=14)] = 4.0
    dead_letter_retention_days: Annotated[float, Meta(ge=1 / 1440, le=14)] = 14.0
    max_receive_count: Annotated[int, Meta(ge=1, le=1000)] = 100
    handlers: tuple[HandlerSettings, ...] = ()


class Settings(Section, frozen=True, kw_only=True):
    """The whole configuration file, decoded, its references resolved."""

    import_path: tuple[str, ...] = ()
    database: DatabaseSettings | None = None
    aws: AwsSettings = AwsSettings()
    http: HttpSettings = HttpSettings()
    supervisor: SupervisorSettings = SupervisorSettings()
    logging: LoggingSettings = LoggingSettings()
    relay: RelaySettings | None = None
    queues: dict[QueueName, QueueSettings] = {}

    def sqs_queue_name(self, queue: str) -> str:
        """The name that SQS knows the queue by: the table's own name unless one is given."""
        return self.queues[queue].queue_name or queue

    def dead_letter_name(self, queue: str) -> str:
        """The name of the configured queue's dead-letter queue in SQS."""
        return self.queues[queue].dead_letter or f"{self.sqs_queue_name(queue)}-dlq"

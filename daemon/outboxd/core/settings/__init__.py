"""The configuration as types: a unit in every name, a default on every line, a rule in every type.

There is a module for each group of tables; whoever uses them imports them from here. How a file
becomes these types is `adapters.configuration`; rules between settings are `core.settings_rules`.
"""

from msgspec import field

from outboxd.core.settings.aws import AwsSettings
from outboxd.core.settings.daemon import HttpSettings, LoggingSettings, SupervisorSettings
from outboxd.core.settings.database import DatabaseSettings
from outboxd.core.settings.destinations import (
    DestinationsSettings,
    EventBridgeSettings,
    RuleSettings,
    SnsSettings,
    SubscriptionSettings,
)
from outboxd.core.settings.kinds import QueueName
from outboxd.core.settings.queues import (
    FIFO_SUFFIX,
    BackoffSettings,
    HandlerSettings,
    InboxMode,
    InboxSettings,
    QueueSettings,
    RecycleSettings,
    is_fifo,
)
from outboxd.core.settings.relay import (
    Envelope,
    OnExhausted,
    Ordering,
    RelaySettings,
    RouteSettings,
)
from outboxd.core.settings.section import Section, hidden, secret

__all__ = [
    "AwsSettings",
    "BackoffSettings",
    "DatabaseSettings",
    "DestinationsSettings",
    "Envelope",
    "EventBridgeSettings",
    "HandlerSettings",
    "HttpSettings",
    "InboxMode",
    "InboxSettings",
    "LoggingSettings",
    "OnExhausted",
    "Ordering",
    "QueueSettings",
    "RecycleSettings",
    "RelaySettings",
    "RouteSettings",
    "RuleSettings",
    "Section",
    "Settings",
    "SnsSettings",
    "SubscriptionSettings",
    "SupervisorSettings",
    "hidden",
    "is_fifo",
    "secret",
]


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
    queues: dict[QueueName, QueueSettings] = field(default_factory=dict)

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

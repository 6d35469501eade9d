"""outboxd: the names that producers and handlers use.

They are loaded when first used, so that importing outboxd costs a handler neither a database driver
nor the AWS SDK.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outboxd.core.errors import PublishRefused, Reject, RetryLater
    from outboxd.core.events import Event, NewEvent, NewJob
    from outboxd.core.outcomes import DeadLetter, DeadReason, Done, Retry
    from outboxd.ports.handling import BatchContext, Context
    from outboxd.producer import enqueue, publish, publish_many

__all__ = [
    "BatchContext",
    "Context",
    "DeadLetter",
    "DeadReason",
    "Done",
    "Event",
    "NewEvent",
    "NewJob",
    "PublishRefused",
    "Reject",
    "Retry",
    "RetryLater",
    "enqueue",
    "publish",
    "publish_many",
]

_HOMES = {
    "BatchContext": "outboxd.ports.handling",
    "Context": "outboxd.ports.handling",
    "DeadLetter": "outboxd.core.outcomes",
    "DeadReason": "outboxd.core.outcomes",
    "Done": "outboxd.core.outcomes",
    "Event": "outboxd.core.events",
    "NewEvent": "outboxd.core.events",
    "NewJob": "outboxd.core.events",
    "PublishRefused": "outboxd.core.errors",
    "Reject": "outboxd.core.errors",
    "Retry": "outboxd.core.outcomes",
    "RetryLater": "outboxd.core.errors",
    "enqueue": "outboxd.producer",
    "publish": "outboxd.producer",
    "publish_many": "outboxd.producer",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'outboxd' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

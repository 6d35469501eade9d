"""Rules between the inbox's retention and that of the queues."""

from collections.abc import Iterator

from outboxd.core.places import Place
from outboxd.core.settings import QueueSettings, Settings


def inbox_problems(settings: Settings) -> Iterator[str]:
    """A retention under which a message could come back after its marks are gone."""
    inbox = settings.inbox
    if inbox.allow_shorter_retention:
        return
    for name in settings.consumed:
        queue = settings.queues[name]
        if not _remembers(queue):
            continue
        days = queue.retention_days + queue.dead_letter_retention_days
        if inbox.retention_days < days:
            yield (
                f"[inbox] retention_days: {inbox.retention_days:g} is below the {days:g} of "
                f"{Place('queues').subtable(name)} retention_days + dead_letter_retention_days, so "
                "an old dead letter that is redriven could run handlers a second time that are "
                "done with it; raise it, or set allow_shorter_retention = true and bear that"
            )


def _remembers(queue: QueueSettings) -> bool:
    return any(handler.inbox != "off" for handler in queue.handlers)

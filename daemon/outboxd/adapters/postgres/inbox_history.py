"""What the inbox knows of one event."""

from collections.abc import Collection
from typing import LiteralString
from uuid import UUID

from outboxd.adapters.postgres.asking import Asking
from outboxd.core.event_history import HandlerFailure, HandlerMark, Suspected

MARKS: LiteralString = """
    SELECT handler, extract(epoch FROM processed_at)::float8
      FROM {schema}.processed_events
     WHERE event_id = %(event_id)s
     ORDER BY processed_at
"""

FAILURES: LiteralString = """
    SELECT handler, message_id, attempts, last_error,
           extract(epoch FROM last_failed_at)::float8, extract(epoch FROM dead_at)::float8
      FROM {schema}.handler_failures
     WHERE event_id = %(event_id)s
     ORDER BY last_failed_at
"""

SUSPECTED: LiteralString = """
    SELECT queue, message_id, crashes_alone, reason, extract(epoch FROM last_crash_at)::float8
      FROM {schema}.suspects
     WHERE message_id = ANY (%(message_ids)s::text[])
     ORDER BY last_crash_at
"""


class InboxHistory:
    """Asks by the event's id, which begins both primary keys; suspects only by message."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    def marks(self, event_id: UUID) -> list[HandlerMark]:
        """The handlers that are done with it."""
        return [HandlerMark(*line) for line in self._asking.rows(MARKS, {"event_id": event_id})]

    def failures(self, event_id: UUID) -> list[HandlerFailure]:
        """The handlers that have failed it, and are not known to have succeeded since."""
        rows = self._asking.rows(FAILURES, {"event_id": event_id})
        return [HandlerFailure(*line) for line in rows]

    def suspected(self, message_ids: Collection[str]) -> list[Suspected]:
        """What stands against these messages."""
        if not message_ids:
            return []
        rows = self._asking.rows(SUSPECTED, {"message_ids": list(message_ids)})
        return [Suspected(*line) for line in rows]

"""Which handlers are done with which of many events."""

import re
from collections.abc import Sequence
from typing import LiteralString

from outboxd.adapters.postgres.asking import Asking

PROCESSED: LiteralString = """
    SELECT event_id::text, handler
      FROM {schema}.processed_events
     WHERE event_id = ANY (%(event_ids)s::uuid[])
"""

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Processed:
    """Reads the marks of the inbox, by the ids that begin their primary key."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    def marks(self, event_ids: Sequence[str]) -> list[tuple[str, str]]:
        """Pairs of event and handler. An id that is no UUID, which a letter of somebody else may
        have, has none. Raises DatabaseError."""
        ids = [each for each in event_ids if _UUID.fullmatch(each)]
        if not ids:
            return []
        return [(row[0], row[1]) for row in self._asking.rows(PROCESSED, {"event_ids": ids})]

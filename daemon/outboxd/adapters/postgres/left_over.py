"""Events of batches whose handler has committed by itself and then failed."""

import logging
from collections import OrderedDict
from collections.abc import Iterable
from uuid import UUID

from outboxd.adapters.postgres.marks import left_over
from outboxd.core.judging import Ending

log = logging.getLogger(__name__)

REMEMBERED = 10_000


class LeftOver:
    """Remembers marks that are committed although their batch has failed, until each event is
    called alone: by its mark alone it would pass for a duplicate, with part of its effect missing.

    In memory: were the process to die before that call, the mark would be believed. So it is with
    a handler that is called with single events, in the moment before its dead letter is written.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, UUID], None] = OrderedDict()

    def add(self, handler: str, event_ids: Iterable[UUID]) -> None:
        """These events' marks are left over."""
        for event_id in event_ids:
            self._known[handler, event_id] = None
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        log.error(
            "batch handler ended its transaction itself, and failed; its events are dead-lettered",
            extra={"handler": handler},
        )

    def __contains__(self, mark: tuple[str, UUID]) -> bool:
        return mark in self._known

    def take(self, handler: str, event_id: UUID) -> Ending | None:
        """How the event's own call ends without being made; None if it is to be made."""
        if (handler, event_id) not in self:
            return None
        del self._known[handler, event_id]
        return left_over(handler)

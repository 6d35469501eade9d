"""Which of a queue's handlers an event type is for."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from outboxd.core.settings import HandlerSettings

_REMEMBERED_TYPES = 1024


class HandlerTable:
    """Looks event types up in the handlers' globs, in the order of the configuration."""

    def __init__(self, handlers: Sequence[HandlerSettings]) -> None:
        self._handlers = tuple(handlers)
        self._known: dict[str, tuple[HandlerSettings, ...]] = {}

    def find(self, event_type: str) -> tuple[HandlerSettings, ...]:
        """The handlers of this event type; none for a type that is unknown here."""
        found = self._known.get(event_type)
        if found is None:
            found = tuple(h for h in self._handlers if fnmatchcase(event_type, h.event))
            # Types come from outside: forget them all rather than remember without a bound.
            if len(self._known) >= _REMEMBERED_TYPES:
                self._known.clear()
            self._known[event_type] = found
        return found

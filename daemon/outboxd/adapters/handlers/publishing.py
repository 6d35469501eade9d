"""`context.publish` within one transaction."""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeAlias

import msgspec

from outboxd.core.events import NewEvent
from outboxd.trace_context import HEADER, current_traceparent

Publish: TypeAlias = Callable[[Any, NewEvent], Any]
"""`outboxd.publish`: stores an event through a connection; awaitable if the connection is."""


class Publishing:
    """Publishes within one transaction, and remembers what nobody has awaited.

    What is published belongs to the handler's span and, where there is none, to the trace of the
    event that the handler was called with, `traceparent`.
    """

    def __init__(self, publish: Publish, tx: Any, traceparent: str | None = None) -> None:
        self._publish = publish
        self._tx = tx
        self._traceparent = traceparent
        self._unawaited = 0

    def now(self, event: NewEvent) -> Awaitable[None]:
        """For a synchronous handler: done on return; awaiting it is allowed."""
        self._publish(self._tx, self._traced(event))
        return _Awaited()

    def later(self, event: NewEvent) -> Awaitable[None]:
        """For an asynchronous handler: done when awaited."""
        self._unawaited += 1
        return _Pending(self, event)

    async def carry_out(self, event: NewEvent) -> None:
        """What awaiting does."""
        self._unawaited -= 1
        await self._publish(self._tx, self._traced(event))

    def forgotten(self) -> bool:
        """Whether an event was handed over and never awaited, so that it would be lost."""
        return self._unawaited > 0

    def _traced(self, event: NewEvent) -> NewEvent:
        if self._traceparent is None or HEADER in event.headers or current_traceparent():
            return event  # `publish` sees to it
        headers = {**event.headers, HEADER: self._traceparent}
        return msgspec.structs.replace(event, headers=headers)


class _Awaited(Awaitable[None]):
    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


class _Pending(Awaitable[None]):
    # No coroutine: one that is never awaited would warn only when it is collected.
    def __init__(self, publishing: Publishing, event: NewEvent) -> None:
        self._publishing = publishing
        self._event = event

    def __await__(self) -> Generator[Any, None, None]:
        return self._publishing.carry_out(self._event).__await__()

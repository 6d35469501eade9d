"""Running handlers: what the consumer asks for, and what a handler may ask for."""

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol
from uuid import UUID

import msgspec

from outboxd.core.clock import boottime
from outboxd.core.envelopes import Incoming
from outboxd.core.errors import OutboxdError
from outboxd.core.events import NewEvent
from outboxd.core.judging import Ending

Publisher = Callable[[NewEvent], Awaitable[None]]

_log = logging.getLogger("outboxd.handler")


class Call(msgspec.Struct, frozen=True):
    """One call of one handler: attempt number `attempt`, to be over at `deadline` (boottime())."""

    incoming: Incoming
    queue: str
    attempt: int
    deadline: float


class HandlerRunner(Protocol):
    """Runs the handlers of one queue, each within its inbox mode."""

    async def run(self, handler: str, call: Call) -> Ending:
        """Call the handler of that name; whatever it does is told by the ending, never raised."""

    def interruptible(self, handler: str) -> bool:
        """Whether cancelling `run` ends the handler too; a thread lives on until it returns."""


class Context:
    """What a handler may want to know of the call that it is in, and may do within it.

    `attempt` counts from 1 and `deadline` is a time of `outboxd.core.clock.boottime`.
    `traceparent` is the trace that the event belongs to, as W3C Trace Context writes it, or None.
    """

    __slots__ = (
        "_publisher",
        "attempt",
        "deadline",
        "event_id",
        "handler",
        "queue",
        "traceparent",
    )

    def __init__(self, handler: str, call: Call, publisher: Publisher | None = None) -> None:
        self.handler = handler
        self.queue = call.queue
        self.event_id: UUID = call.incoming.id
        self.attempt = call.attempt
        self.deadline = call.deadline
        self.traceparent = call.incoming.traceparent
        self._publisher = publisher

    @property
    def idempotency_key(self) -> str:
        """The same in every attempt and different for every handler: for services that take one."""
        return f"{self.event_id}:{self.handler}"

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose every line names the event, the handler and the queue."""
        facts = {"event_id": str(self.event_id), "handler": self.handler, "queue": self.queue}
        return _HandlerLogger(_log, facts)

    def seconds_left(self) -> float:
        """Until the handler's time is over; negative when it is."""
        return self.deadline - boottime()

    def publish(self, event: NewEvent) -> Awaitable[None]:
        """Store an event in the outbox, in the transaction of the handler's own changes.

        A synchronous handler has published when this returns; an asynchronous one awaits it.
        Raises OutboxdError if the handler has no transaction.
        """
        if self._publisher is None:
            raise OutboxdError(
                f"handler {self.handler} has no transaction to publish in: "
                'set inbox = "transaction" for it'
            )
        return self._publisher(event)


class _HandlerLogger(logging.LoggerAdapter[logging.Logger]):
    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        # The handler's own facts stay: LoggerAdapter replaces them until Python 3.13.
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, kwargs

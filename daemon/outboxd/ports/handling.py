"""Running handlers: what the consumer asks for, and what a handler may ask for."""

import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Protocol, TypeAlias
from uuid import UUID

import msgspec

from outboxd.core.clock import boottime
from outboxd.core.envelopes import Incoming
from outboxd.core.errors import OutboxdError
from outboxd.core.events import NewEvent
from outboxd.core.judging import Away, Busy, Ending
from outboxd.core.log_facts import HANDLER_LOGGER
from outboxd.ports.user_metrics import NOWHERE, UserMetrics

Publisher = Callable[[NewEvent], Awaitable[None]]
Claim = Callable[[Any], Any]
"""What `Context.claim` does with a connection."""

_log = logging.getLogger(HANDLER_LOGGER)


class Call(msgspec.Struct, frozen=True):
    """One call of one handler: attempt number `attempt`, to be over at `deadline` (boottime())."""

    incoming: Incoming
    queue: str
    attempt: int
    deadline: float


class BatchDone(msgspec.Struct, frozen=True):
    """The batch has taken effect as a whole. The events at `duplicates` had been done before; those
    at `left_out` were not part of it, and are to be called alone. Positions count from 0."""

    duplicates: frozenset[int] = frozenset()
    left_out: frozenset[int] = frozenset()


class BatchFailed(msgspec.Struct, frozen=True):
    """Nothing of the batch has taken effect. No attempt is to be counted: each event is called
    alone now, which finds out whose fault it is."""

    error: str


BatchEnding: TypeAlias = BatchDone | BatchFailed | Busy | Away


class HandlerRunner(Protocol):
    """Runs the handlers of one queue, each within its inbox mode."""

    async def run(self, handler: str, call: Call) -> Ending:
        """Call the handler of that name; whatever it does is told by the ending, never raised."""

    async def run_batch(self, handler: str, calls: Sequence[Call]) -> BatchEnding:
        """Call a handler that takes batches with all of these events, in one transaction; whatever
        it does is told by the ending. All calls have the same deadline."""

    def interruptible(self, handler: str) -> bool:
        """Whether cancelling `run` ends the handler too; a thread lives on until it returns."""


class _CallContext:
    """What is the same for a call with one event and for one with many."""

    __slots__ = ("_publisher", "deadline", "handler", "metrics", "queue")

    def __init__(
        self,
        handler: str,
        queue: str,
        deadline: float,
        publisher: Publisher | None,
        metrics: UserMetrics = NOWHERE,
    ) -> None:
        self.handler = handler
        self.queue = queue
        self.deadline = deadline
        self.metrics = metrics
        self._publisher = publisher

    def seconds_left(self) -> float:
        """Until the handler's time is over; negative when it is."""
        return self.deadline - boottime()

    def publish(self, event: NewEvent) -> Awaitable[None]:
        """Store an event in the outbox, in the transaction of the handler's own changes.

        A synchronous handler has published when this returns; an asynchronous one awaits it.
        Raises OutboxdError if outboxd has no transaction for the handler.
        """
        if self._publisher is None:
            raise OutboxdError(self._no_transaction())
        return self._publisher(event)

    def _no_transaction(self) -> str:
        return (
            f"handler {self.handler} has no transaction to publish in: "
            'set inbox = "transaction" for it'
        )


class Context(_CallContext):
    """What a handler may want to know of the call that it is in, and may do within it.

    `attempt` counts from 1 and `deadline` is a time of `outboxd.core.clock.boottime`.
    `traceparent` is the trace that the event belongs to, as W3C Trace Context writes it, or None.
    `metrics` has counters, gauges and histograms of the handler's own.
    """

    __slots__ = ("_claim", "attempt", "event_id", "traceparent")

    def __init__(
        self,
        handler: str,
        call: Call,
        publisher: Publisher | None = None,
        claim: Claim | None = None,
        metrics: UserMetrics = NOWHERE,
    ) -> None:
        super().__init__(handler, call.queue, call.deadline, publisher, metrics)
        self.event_id: UUID = call.incoming.id
        self.attempt = call.attempt
        self.traceparent = call.incoming.traceparent
        self._claim = claim

    @property
    def idempotency_key(self) -> str:
        """The same in every attempt and different for every handler: for services that take one."""
        return f"{self.event_id}:{self.handler}"

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose every line names the event, the handler and the queue."""
        facts = {"event_id": str(self.event_id), "handler": self.handler, "queue": self.queue}
        return _HandlerLogger(_log, facts)

    def claim(self, connection: Any) -> Any:
        """With `inbox = "own"`: mark the event as done, in the transaction of `connection`. Returns
        whether it is new: False means that it has been done already, and there is nothing to do.

        `connection` is a psycopg connection, an SQLAlchemy Connection or Session, or Django's
        connection, on the database of `[database]`, with the transaction that the effect will be
        in. The mark is committed, or rolled back, with that effect. With an asynchronous one, await
        the result. A second claim in the same transaction gives the same answer.

        While another copy of the event is in work this waits for it, at most two seconds; then it
        raises an error to be let out, and outboxd brings the message again, at no one's expense.
        Raises OutboxdError for a connection that would commit the mark by itself, and for a handler
        with another inbox.
        """
        if self._claim is None:
            raise OutboxdError(
                f"handler {self.handler} has nothing to claim: "
                'that is for handlers with inbox = "own"'
            )
        return self._claim(connection)

    def _no_transaction(self) -> str:
        if self._claim is None:
            return super()._no_transaction()
        return (
            f'handler {self.handler} has inbox = "own", so its transaction is not known to '
            "context.publish(): call outboxd.publish(connection, event) within it"
        )


class BatchContext(_CallContext):
    """What a handler with `batch` may want to know of the call that it is in, and may do within it.

    `deadline` is a time of `outboxd.core.clock.boottime`, for the whole batch.
    """

    __slots__ = ()

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose every line names the handler and the queue."""
        return _HandlerLogger(_log, {"handler": self.handler, "queue": self.queue})


class _HandlerLogger(logging.LoggerAdapter[logging.Logger]):
    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        # The handler's own facts stay: LoggerAdapter replaces them until Python 3.13.
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, kwargs

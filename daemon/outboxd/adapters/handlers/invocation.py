"""With what a handler is called: its event or events, its transaction, its context."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from outboxd.adapters.handlers.loading import LoadedHandler
from outboxd.core.envelopes import Incoming
from outboxd.core.events import Event
from outboxd.core.judging import Ending, Returned, describe
from outboxd.core.log_facts import CallFacts, trace_facts
from outboxd.core.outcomes import DeadLetter, DeadReason
from outboxd.ports.handling import BatchContext, Call, Claim, Context, Publisher


class Invocation:
    """One call of a handler, with one event or, if it takes batches, with a list of them."""

    def __init__(
        self,
        handler: LoadedHandler,
        subject: Event[Any] | Sequence[Event[Any]],
        context: Callable[[Publisher | None], Context | BatchContext],
        facts: CallFacts,
        incoming: Incoming | None = None,
    ) -> None:
        """`facts` makes what the log says of the call. `incoming` is the one event; its trace is
        what events published by the handler continue. A batch has none."""
        self.handler = handler
        self.subject = subject
        self.facts = facts
        self.payload = None if incoming is None else incoming.payload
        self.traceparent = None if incoming is None else incoming.traceparent
        self._context = context

    def arguments(self, tx: Any, publisher: Publisher | None) -> dict[str, Any]:
        """What the handler asks for besides its events."""
        arguments: dict[str, Any] = {}
        if self.handler.signature.wants_tx:
            arguments["tx"] = tx
        if self.handler.signature.wants_context:
            arguments["context"] = self._context(publisher)
        return arguments


def invocation_of_one(
    handler: LoadedHandler, call: Call, event: Event[Any], claim: Claim | None = None
) -> Invocation:
    """A call with one event; a handler that takes batches sees a list of one."""

    def facts() -> dict[str, object]:
        return {
            "handler": handler.name,
            "queue": call.queue,
            "event_id": str(call.incoming.id),
            "attempt": call.attempt,
            **trace_facts(call.incoming.traceparent),
        }

    if handler.settings.batch > 1:
        return Invocation(handler, [event], _batch_context(handler, call), facts)
    return Invocation(
        handler,
        event,
        lambda publisher: Context(handler.name, call, publisher, claim, handler.metrics),
        facts,
        call.incoming,
    )


def invocation_of_many(
    handler: LoadedHandler, call: Call, events: Sequence[Event[Any]]
) -> Invocation:
    """A call with a batch of events; `call` is that of any of them."""

    def facts() -> dict[str, object]:
        return {"handler": handler.name, "queue": call.queue, "events": len(events)}

    return Invocation(handler, list(events), _batch_context(handler, call), facts)


def _batch_context(
    handler: LoadedHandler, call: Call
) -> Callable[[Publisher | None], BatchContext]:
    return lambda publisher: BatchContext(
        handler.name, call.queue, call.deadline, publisher, handler.metrics
    )


def event_of(handler: LoadedHandler, call: Call) -> Event[Any] | Ending:
    """The event with the payload that the handler expects, or why it has another."""
    incoming = call.incoming
    try:
        payload = handler.decoder.decode(incoming.payload)
    # ValidationError and DecodeError, but a payload may also nest too deep, and a type's own
    # __post_init__ may raise anything.
    except Exception as error:
        text = describe(error) if not isinstance(error, msgspec.MsgspecError) else str(error)
        return Returned(DeadLetter(DeadReason.INVALID_PAYLOAD, text))
    return Event(
        id=incoming.id,
        type=incoming.type,
        aggregate_type=incoming.aggregate_type,
        aggregate_id=incoming.aggregate_id,
        occurred_at=incoming.occurred_at,
        payload=payload,
    )

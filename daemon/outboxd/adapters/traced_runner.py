"""One OpenTelemetry span around every call of a handler.

Names follow "Semantic conventions for messaging spans" and those "for AWS SQS" (both 1.3x, where
they are in development); what they have no name for is called `outboxd.…`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import assert_never

from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    get_current_span,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from outboxd.core.envelopes import Incoming
from outboxd.core.judging import Away, Busy, Ending, Raised, Returned, TimedOut, clean
from outboxd.core.outcomes import DeadLetter, Done, Outcome, Retry
from outboxd.ports.handling import BatchDone, BatchEnding, BatchFailed, Call, HandlerRunner

_w3c = TraceContextTextMapPropagator()


class TracedRunner:
    """Keeps `ports.handling.HandlerRunner` by another one. The span of a call is current while its
    handler runs, in a thread too: anyio's threads run in a copy of the caller's context."""

    def __init__(self, runner: HandlerRunner, tracer: Tracer, destination: str) -> None:
        self._runner = runner
        self._tracer = tracer
        self._destination = destination

    def interruptible(self, handler: str) -> bool:
        return self._runner.interruptible(handler)

    async def run(self, handler: str, call: Call) -> Ending:
        attributes: dict[str, str | int] = {
            "outboxd.event.type": call.incoming.type,
            "outboxd.event.id": str(call.incoming.id),
            "outboxd.attempt": call.attempt,
        }
        with self._span(handler, attributes, parent=_context_of(call.incoming)) as span:
            ending = await self._runner.run(handler, call)
            _tell(span, ending)
            return ending

    async def run_batch(self, handler: str, calls: Sequence[Call]) -> BatchEnding:
        """A span can have one parent, and these events belong to traces of their own: they are
        linked, as the conventions say for batches."""
        attributes = {"messaging.batch.message_count": len(calls)}
        links = [Link(context) for call in calls if (context := _span_context_of(call)).is_valid]
        with self._span(handler, attributes, links=links) as span:
            ending = await self._runner.run_batch(handler, calls)
            _tell_batch(span, ending)
            return ending

    @contextmanager
    def _span(
        self,
        handler: str,
        attributes: Mapping[str, str | int],
        *,
        parent: Context | None = None,
        links: Sequence[Link] = (),
    ) -> Iterator[Span]:
        with self._tracer.start_as_current_span(
            f"process {self._destination}",
            # Never what is current here: a worker of the pool belongs to no trace.
            context=Context() if parent is None else parent,
            kind=SpanKind.CONSUMER,
            attributes={
                "messaging.system": "aws_sqs",
                "messaging.operation.name": "process",
                "messaging.operation.type": "process",
                "messaging.destination.name": self._destination,
                "outboxd.handler": handler,
                **attributes,
            },
            links=links,
        ) as span:
            try:
                yield span
            except BaseException as error:
                # CancelledError above all, which OpenTelemetry does not count as an error.
                _fail(span, type(error).__name__, "the call was broken off")
                raise


def _context_of(incoming: Incoming) -> Context:
    if incoming.traceparent is None:
        return Context()
    return _w3c.extract({"traceparent": incoming.traceparent}, Context())


def _span_context_of(call: Call) -> SpanContext:
    return get_current_span(_context_of(call.incoming)).get_span_context()


def _tell(span: Span, ending: Ending) -> None:
    match ending:
        case Returned(outcome=outcome):
            _tell_outcome(span, outcome)
        case Raised(error=error):
            _fail(span, _class_name(error), error)
        case TimedOut(seconds=seconds):
            _fail(span, "timeout", f"timed out after {seconds:g} s")
        case Busy():
            _fail(span, "busy", "another copy is being handled")
        case Away(error=error):
            _fail(span, "database", error)
        case _:
            assert_never(ending)


def _tell_outcome(span: Span, outcome: Outcome) -> None:
    match outcome:
        case Done(duplicate=duplicate):
            if duplicate:
                span.set_attribute("outboxd.duplicate", True)
        case Retry(error=error):
            _fail(span, "retry", error)
        case DeadLetter(reason=reason, error=error):
            _fail(span, reason.value, error)
        case _:
            assert_never(outcome)


def _class_name(error: str) -> str:
    """As `core.judging.describe` writes it in front; "error" for what was no exception."""
    name = error.partition(":")[0]
    return name if name.isidentifier() else "error"


def _tell_batch(span: Span, ending: BatchEnding) -> None:
    match ending:
        case BatchDone(duplicates=duplicates, left_out=left_out):
            span.set_attribute("outboxd.batch.duplicates", len(duplicates))
            span.set_attribute("outboxd.batch.left_out", len(left_out))
        case BatchFailed(error=error):
            _fail(span, "batch", error)
        case Busy():
            _fail(span, "busy", "another copy is being handled")
        case Away(error=error):
            _fail(span, "database", error)
        case _:
            assert_never(ending)


def _fail(span: Span, kind: str, error: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, clean(error)))

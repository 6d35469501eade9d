"""A call of a handler is one span: of the event's trace, and current while the handler runs."""

import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from uuid import UUID

import anyio
import msgspec
import pytest
from anyio import to_thread
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracerProvider, SpanKind, StatusCode

from outboxd.adapters.tracing import tracing
from outboxd.core.envelopes import Incoming
from outboxd.core.judging import Away, Busy, Ending, Raised, Returned, TimedOut
from outboxd.core.outcomes import DeadLetter, DeadReason, Done, Retry
from outboxd.ports.handling import (
    BatchDone,
    BatchEnding,
    BatchFailed,
    Call,
    HandlerRunner,
)

TRACE_ID = 0x5759E988BD862E3FE1BE46A994272793
PARENT_ID = 0x53995C3F42CD8AD8
TRACEPARENT = f"00-{TRACE_ID:032x}-{PARENT_ID:016x}-01"
EVENT_ID = UUID("0c8e1f9e-6a7f-4a51-9f0a-8a3c1a4d9b11")


def call(traceparent: str | None = TRACEPARENT) -> Call:
    incoming = Incoming(
        id=EVENT_ID,
        type="order.placed",
        aggregate_type="order",
        aggregate_id="7",
        occurred_at=datetime.now(UTC),
        payload=msgspec.Raw(b"null"),
        traceparent=traceparent,
    )
    return Call(incoming, "orders", attempt=3, deadline=0.0)


class Scripted:
    """Ends every call as it was told, and notes the span that was current meanwhile."""

    def __init__(self, ending: Ending | None = None, batch: BatchEnding | None = None) -> None:
        self.current: list[trace.SpanContext] = []
        self._ending: Ending = Returned(Done()) if ending is None else ending
        self._batch: BatchEnding = BatchDone() if batch is None else batch

    def interruptible(self, handler: str) -> bool:
        return handler == "interruptible"

    async def run(self, handler: str, call: Call) -> Ending:
        self._look()
        await to_thread.run_sync(self._look)
        return self._ending

    async def run_batch(self, handler: str, calls: Sequence[Call]) -> BatchEnding:
        return self._batch

    def _look(self) -> None:
        self.current.append(trace.get_current_span().get_span_context())


class Stuck(Scripted):
    async def run(self, handler: str, call: Call) -> Ending:
        await anyio.sleep_forever()
        raise AssertionError


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(
    exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TracerProvider]:
    """The SDK, configured for this test alone: the API lets a process set its provider once."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield provider
    provider.shutdown()


async def spans_of(
    runner: HandlerRunner, exporter: InMemorySpanExporter, *calls: Call
) -> tuple[ReadableSpan, ...]:
    async with tracing(runner, "shop-orders") as traced:
        for each in calls:
            await traced.run("order.confirm", each)
    return exporter.get_finished_spans()


@pytest.mark.usefixtures("provider")
async def test_a_call_is_a_span_of_the_events_trace(exporter: InMemorySpanExporter) -> None:
    (span,) = await spans_of(Scripted(), exporter, call())

    assert span.name == "process shop-orders"
    assert span.kind is SpanKind.CONSUMER
    assert span.parent is not None
    assert (span.parent.trace_id, span.parent.span_id) == (TRACE_ID, PARENT_ID)
    assert span.parent.is_remote
    assert span.status.status_code is StatusCode.UNSET
    assert dict(span.attributes or {}) == {
        "messaging.system": "aws_sqs",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "shop-orders",
        "outboxd.handler": "order.confirm",
        "outboxd.event.type": "order.placed",
        "outboxd.event.id": str(EVENT_ID),
        "outboxd.attempt": 3,
    }


@pytest.mark.usefixtures("provider")
async def test_an_event_without_a_trace_begins_one_whatever_is_current(
    exporter: InMemorySpanExporter, provider: TracerProvider
) -> None:
    with provider.get_tracer("test").start_as_current_span("unrelated"):
        spans = await spans_of(Scripted(), exporter, call(None))
    assert spans[0].parent is None


@pytest.mark.usefixtures("provider")
async def test_the_span_is_current_in_the_handler_and_in_its_thread(
    exporter: InMemorySpanExporter,
) -> None:
    runner = Scripted()
    (span,) = await spans_of(runner, exporter, call())
    assert runner.current == [span.context, span.context]
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.usefixtures("provider")
async def test_calls_at_the_same_time_do_not_see_each_others_spans(
    exporter: InMemorySpanExporter,
) -> None:
    runner = Scripted()
    async with tracing(runner, "q") as traced, anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(traced.run, "h", call(None))
    ids = {span.context.span_id for span in exporter.get_finished_spans()}
    assert {current.span_id for current in runner.current} == ids
    assert len(ids) == 10
    assert len(runner.current) == 20


@pytest.mark.usefixtures("provider")
@pytest.mark.parametrize(
    ("ending", "kind", "text"),
    [
        (Returned(Retry(5.0, "later")), "retry", "later"),
        (Returned(DeadLetter(DeadReason.REJECTED, "Reject: no")), "rejected", "Reject: no"),
        (Raised("ValueError: 42"), "ValueError", "ValueError: 42"),
        (Raised("handler h did not await it"), "error", "handler h did not await it"),
        (TimedOut(1.5), "timeout", "timed out after 1.5 s"),
        (Busy(), "busy", "another copy is being handled"),
        (Away("connection lost"), "database", "connection lost"),
    ],
)
async def test_an_ending_that_is_not_done_is_an_error(
    exporter: InMemorySpanExporter, ending: Ending, kind: str, text: str
) -> None:
    (span,) = await spans_of(Scripted(ending), exporter, call())
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == text
    assert (span.attributes or {})["error.type"] == kind


@pytest.mark.usefixtures("provider")
async def test_a_duplicate_is_no_error(exporter: InMemorySpanExporter) -> None:
    (span,) = await spans_of(Scripted(Returned(Done(duplicate=True))), exporter, call())
    assert span.status.status_code is StatusCode.UNSET
    assert (span.attributes or {})["outboxd.duplicate"] is True


@pytest.mark.usefixtures("provider")
async def test_a_call_that_a_drain_breaks_off_ends_its_span(exporter: InMemorySpanExporter) -> None:
    with anyio.move_on_after(0.01):
        await spans_of(Stuck(), exporter, call())
    (span,) = exporter.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "CancelledError"


@pytest.mark.usefixtures("provider")
async def test_a_batch_is_linked_to_the_traces_of_its_events(
    exporter: InMemorySpanExporter,
) -> None:
    runner = Scripted(batch=BatchDone(duplicates=frozenset({1})))
    async with tracing(runner, "q") as traced:
        await traced.run_batch("h", [call(), call(None)])
    (span,) = exporter.get_finished_spans()
    assert span.parent is None
    assert [link.context.span_id for link in span.links] == [PARENT_ID]
    attributes = span.attributes or {}
    assert attributes["messaging.batch.message_count"] == 2
    assert attributes["outboxd.batch.duplicates"] == 1


@pytest.mark.usefixtures("provider")
@pytest.mark.parametrize("ending", [BatchFailed("no"), Busy(), Away("gone")])
async def test_a_batch_that_is_not_done_is_an_error(
    exporter: InMemorySpanExporter, ending: BatchEnding
) -> None:
    async with tracing(Scripted(batch=ending), "q") as traced:
        assert await traced.run_batch("h", [call()]) is ending
    (span,) = exporter.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR


@pytest.mark.usefixtures("provider")
async def test_what_is_asked_of_a_runner_is_asked_of_the_one_inside() -> None:
    async with tracing(Scripted(Busy()), "q") as traced:
        assert await traced.run("h", call()) == Busy()
        assert traced.interruptible("interruptible")
        assert not traced.interruptible("h")


async def test_spans_are_exported_before_the_pool_ends(
    exporter: InMemorySpanExporter, provider: TracerProvider
) -> None:
    slow = TracerProvider()
    slow.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=3_600_000))
    try:
        async with patched(slow), tracing(Scripted(), "q") as traced:
            await traced.run("h", call())
            assert not exporter.get_finished_spans()
        assert len(exporter.get_finished_spans()) == 1
    finally:
        slow.shutdown()


@pytest.mark.parametrize("unseen", [NoOpTracerProvider(), trace.ProxyTracerProvider()])
async def test_without_an_sdk_the_runner_is_left_as_it_is(unseen: trace.TracerProvider) -> None:
    runner = Scripted()
    async with patched(unseen), tracing(runner, "q") as traced:
        assert traced is runner


async def test_without_opentelemetry_the_runner_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    runner = Scripted()
    async with tracing(runner, "q") as traced:
        assert traced is runner


@asynccontextmanager
async def patched(provider: trace.TracerProvider) -> AsyncIterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "get_tracer_provider", lambda: provider)
        yield

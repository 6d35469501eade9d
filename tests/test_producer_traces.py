"""The trace of an event: given, its own, or the current span."""

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler
from opentelemetry.trace import Span, Tracer

from outboxd import Context, Event, NewJob, enqueue, publish, publish_many
from outboxd.adapters.handlers.publishing import Publishing
from outboxd.trace_context import current_traceparent
from tests.adapters.handling_scene import DONE, Scene, a_scene
from tests.producer_scene import an_event, rows

GIVEN = "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01"
OWN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"


@pytest.fixture
def connection(database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database) as connection:
        yield connection


@pytest.fixture
def tracer() -> Tracer:
    return TracerProvider().get_tracer("tests")


@pytest.fixture
async def scene(database: str) -> AsyncIterator[Scene]:
    async with a_scene(database) as scene:
        yield scene


def traceparents(connection: psycopg.Connection[Any]) -> list[str | None]:
    found = connection.execute(
        "SELECT headers ->> 'traceparent' FROM outboxd.outbox_events ORDER BY seq"
    )
    return [traceparent for (traceparent,) in found]


def of(span: Span) -> str:
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def test_without_any_there_is_no_header(connection: psycopg.Connection[Any]) -> None:
    publish(connection, an_event())

    assert traceparents(connection) == [None]


def test_the_current_span_is_taken(connection: psycopg.Connection[Any], tracer: Tracer) -> None:
    with tracer.start_as_current_span("checkout") as span:
        publish(connection, an_event(headers={"tenant": "7"}))
        enqueue(connection, NewJob("mail.send", 1))
        publish_many(connection, [an_event(), an_event()])

    assert traceparents(connection) == [of(span)] * 4


def test_what_is_given_comes_before_the_header_and_the_header_before_the_span(
    connection: psycopg.Connection[Any], tracer: Tracer
) -> None:
    event = an_event(headers={"traceparent": OWN})
    with tracer.start_as_current_span("checkout"):
        publish(connection, event, traceparent=GIVEN)
        publish(connection, event)
        publish_many(connection, [an_event(headers={"traceparent": OWN})], traceparent=GIVEN)

    assert traceparents(connection) == [GIVEN, OWN, GIVEN]
    assert event.headers == {"traceparent": OWN}


def test_an_invalid_one_is_passed_over_and_fails_nothing(
    connection: psycopg.Connection[Any], tracer: Tracer
) -> None:
    publish(connection, an_event(headers={"traceparent": "00-1"}), traceparent="garbage")
    with tracer.start_as_current_span("checkout") as span:
        publish(connection, an_event(), traceparent="garbage")

    assert traceparents(connection) == ["00-1", of(span)]


@pytest.mark.parametrize(("sampler", "sampled"), [(ALWAYS_ON, 1), (ALWAYS_OFF, 0)])
def test_whether_it_is_sampled_travels_along(sampler: Sampler, sampled: int) -> None:
    """Bit 0 of the flags; bit 1 says that the id is random, and newer SDKs set it."""
    with TracerProvider(sampler=sampler).get_tracer("tests").start_as_current_span("checkout"):
        found = current_traceparent()

    assert found is not None
    assert int(found[-2:], 16) & 1 == sampled


def test_opentelemetry_is_not_imported_for_it() -> None:
    code = (
        "import sys, outboxd.producer; from outboxd.trace_context import current_traceparent; "
        "print(current_traceparent(), 'opentelemetry' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.split() == ["None", "False"]


async def test_a_handler_publishes_in_its_own_span(
    scene: Scene, database: str, tracer: Tracer
) -> None:
    """Of a synchronous handler too: its thread runs in a copy of the caller's context."""

    def sync(event: Event[Any], context: Context) -> None:
        context.publish(an_event())

    async def asynchronous(event: Event[Any], context: Context) -> None:
        await context.publish(an_event())

    with tracer.start_as_current_span("process orders") as span:
        for handler in (sync, asynchronous):
            assert await scene.run(handler) == DONE

    found = rows(database, "SELECT headers ->> 'traceparent' FROM outboxd.outbox_events")
    assert found == [(of(span),), (of(span),)]


@pytest.mark.parametrize("traced", [False, True])
def test_without_a_span_a_handler_continues_the_trace_of_its_event(
    connection: psycopg.Connection[Any], tracer: Tracer, traced: bool
) -> None:
    publishing = Publishing(publish, connection, GIVEN)
    expected = GIVEN
    if traced:
        with tracer.start_as_current_span("process orders") as span:
            publishing.now(an_event())
        expected = of(span)
    else:
        publishing.now(an_event())
    publishing.now(an_event(headers={"traceparent": OWN}))

    assert traceparents(connection) == [expected, OWN]

"""`outboxd.testing.run`: a handler's outcome, decided as the daemon decides it."""

import asyncio
import inspect
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from outboxd import (
    Context,
    DeadLetter,
    Done,
    Event,
    NewEvent,
    PublishRefused,
    Reject,
    Retry,
    RetryLater,
)
from outboxd.core.errors import SettingsError
from outboxd.core.outcomes import DeadReason, Outcome
from outboxd.core.settings import DatabaseSettings, HandlerSettings, QueueSettings
from outboxd.testing import run, run_async


class Paid(msgspec.Struct):
    order_id: UUID
    amount: int
    paid_at: datetime


ORDER = uuid4()
PAID = Paid(ORDER, 500, datetime(2026, 1, 2, tzinfo=UTC))


def an_event(payload: Any = PAID, **changes: Any) -> Event[Any]:
    values = {
        "id": uuid4(),
        "type": "payment.succeeded",
        "aggregate_type": "order",
        "aggregate_id": "o-1",
        "occurred_at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        **changes,
    }
    return Event(payload=payload, **values)


def a_new_event(payload: Any = PAID) -> NewEvent:
    return NewEvent("payment.succeeded", "order", "o-1", payload)


class Recorder:
    """A handler that keeps what it was given."""

    def __init__(self, outcome: Outcome | None = None) -> None:
        self.outcome = outcome
        self.seen: list[Any] = []

    def __call__(self, event: Event[Paid], context: Context) -> Outcome | None:
        self.seen.append((event, context))
        return self.outcome


@pytest.mark.parametrize("event", [an_event(), a_new_event()], ids=["Event", "NewEvent"])
def test_the_payload_arrives_in_the_annotated_type_by_way_of_json(event: Any) -> None:
    handler = Recorder()

    assert run(handler, event) == Done()

    ((seen, _),) = handler.seen
    assert seen.payload == PAID
    assert seen.payload is not PAID
    assert (seen.id, seen.type) == (event.id, event.type)
    assert (seen.aggregate_type, seen.aggregate_id) == ("order", "o-1")
    assert seen.occurred_at.tzinfo is not None


def test_the_event_is_the_same_on_both_sides() -> None:
    handler, event = Recorder(), an_event()

    run(handler, event)

    assert handler.seen[0][0] == event


@dataclass
class Placed:
    number: int


def plain(event: Event) -> None:  # type: ignore[type-arg]
    assert event.payload == {"number": 7}


def typed(event: Event[Placed]) -> None:
    assert event.payload == Placed(7)


async def asynchronous(event: Event[Placed]) -> None:
    await asyncio.sleep(0)
    assert event.payload == Placed(7)


def rejects(event: Event[Any]) -> None:
    raise Reject("no such customer")


def asks_for_time(event: Event[Any]) -> None:
    raise RetryLater("the bank is closed", after_seconds=90)


def fails(event: Event[Any]) -> None:
    raise ValueError("odd")


def exits(event: Event[Any]) -> None:
    raise SystemExit(3)


def returns_nonsense(event: Event[Any]) -> object:
    return False


def says_done(event: Event[Any]) -> Outcome:
    return Done()


def says_again(event: Event[Any]) -> Outcome:
    return Retry(7, "soon")


def says_dead(event: Event[Any]) -> Outcome:
    return DeadLetter(DeadReason.REJECTED, "never")


async def rejects_asynchronously(event: Event[Any]) -> None:
    raise Reject("no such customer")


async def sleeps(event: Event[Any]) -> None:
    await asyncio.sleep(3600)


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (plain, Done()),
        (typed, Done()),
        (asynchronous, Done()),
        (lambda event: None, Done()),
        (says_done, Done()),
        (says_again, Retry(7, "soon")),
        (says_dead, DeadLetter(DeadReason.REJECTED, "never")),
        (rejects, DeadLetter(DeadReason.REJECTED, "Reject: no such customer")),
        (rejects_asynchronously, DeadLetter(DeadReason.REJECTED, "Reject: no such customer")),
        (asks_for_time, Retry(90, "RetryLater: the bank is closed")),
        (fails, Retry(2, "ValueError: odd")),
        (exits, Retry(2, "SystemExit: 3")),
    ],
)
def test_a_handler_ends_as_it_says_or_fails(handler: Any, expected: Outcome) -> None:
    assert run(handler, a_new_event({"number": 7})) == expected


def test_a_return_value_that_means_nothing_is_a_failure() -> None:
    outcome = run(returns_nonsense, a_new_event({}))

    assert isinstance(outcome, Retry)
    assert "returned 'bool'; return None, Done, Retry or DeadLetter" in outcome.error


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        (1, Retry(2, "ValueError: odd")),
        (2, Retry(4, "ValueError: odd")),
        (4, Retry(16, "ValueError: odd")),
        (5, DeadLetter(DeadReason.MAX_ATTEMPTS, "ValueError: odd")),
    ],
)
def test_failures_are_judged_by_the_attempt(attempt: int, expected: Outcome) -> None:
    assert run(fails, a_new_event({}), attempt=attempt) == expected


def test_patience_is_that_of_the_configuration() -> None:
    assert isinstance(run(fails, a_new_event({}), attempt=9, max_attempts=10), Retry)
    assert isinstance(run(fails, a_new_event({}), attempt=1, max_attempts=1), DeadLetter)


def test_the_defaults_are_those_of_the_configuration() -> None:
    defaults = inspect.signature(run).parameters
    handler = HandlerSettings(event="*", handler="m:f", name="n")
    assert defaults["max_attempts"].default == QueueSettings().max_attempts
    assert defaults["timeout_seconds"].default == handler.timeout_seconds
    assert defaults["schema"].default == DatabaseSettings(url="postgresql://").schema
    assert list(defaults.values()) == list(inspect.signature(run_async).parameters.values())


def test_an_asynchronous_handler_has_so_much_time() -> None:
    first = run(sleeps, a_new_event({}), timeout_seconds=0.01)
    last = run(sleeps, a_new_event({}), timeout_seconds=0.01, attempt=5)

    assert first == Retry(2, "timed out after 0.01 s")
    assert last == DeadLetter(DeadReason.TIMEOUT, "timed out after 0.01 s")


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        ({"order_id": str(ORDER), "amount": "many", "paid_at": "2026-01-02T00:00:00Z"}, "$.amount"),
        ({"order_id": str(ORDER)}, "missing required field `amount`"),
        ([], "Expected `object`"),
    ],
)
def test_a_payload_of_another_shape_never_reaches_the_handler(
    payload: object, problem: str
) -> None:
    handler = Recorder()

    outcome = run(handler, a_new_event(payload))

    assert isinstance(outcome, DeadLetter)
    assert outcome.reason is DeadReason.INVALID_PAYLOAD
    assert problem in outcome.error
    assert handler.seen == []


def test_an_event_that_no_envelope_can_hold_is_malformed() -> None:
    outcome = run(Recorder(), an_event(occurred_at=datetime(2026, 1, 2)))

    assert outcome == DeadLetter(DeadReason.MALFORMED, "`occurred_at` has no time zone")


def test_a_payload_that_is_no_json_could_not_have_been_published() -> None:
    with pytest.raises(PublishRefused, match="payload is not encodable as JSON"):
        run(plain, a_new_event(object()))


def test_the_context_tells_of_this_attempt() -> None:
    handler, event = Recorder(), an_event()

    run(handler, event, attempt=3, name="payment.record", timeout_seconds=60)

    ((_, context),) = handler.seen
    assert (context.attempt, context.event_id, context.handler) == (3, event.id, "payment.record")
    assert context.idempotency_key == f"{event.id}:payment.record"
    assert 0 < context.seconds_left() <= 60


def test_without_a_transaction_there_is_nothing_to_publish_in() -> None:
    def publishes(event: Event[Any], context: Context) -> None:
        context.publish(a_new_event())

    outcome = run(publishes, a_new_event({}))

    assert isinstance(outcome, Retry)
    assert "has no transaction to publish in" in outcome.error


class Mailer:
    def __init__(self, *, sender: str, port: int = 25) -> None:
        self.sender = f"{sender}:{port}"

    def __call__(self, event: Event[Any]) -> Outcome:
        return Retry(1, self.sender)


def test_a_class_is_constructed_with_its_options() -> None:
    assert run(Mailer, a_new_event({}), options={"sender": "a@b"}) == Retry(1, "a@b:25")
    assert run(Mailer(sender="c", port=1), a_new_event({})) == Retry(1, "c:1")


def test_options_that_do_not_fit_are_told_as_python_tells_them() -> None:
    with pytest.raises(SettingsError, match="could not be constructed with its `opt"):
        run(Mailer, a_new_event({}), options={"sendr": "a"})


def no_event() -> None: ...


def unknown_parameter(event: Event[Any], database: Any) -> None: ...


@pytest.mark.parametrize(
    ("handler", "options", "problem"),
    [
        (no_event, None, r"test_handling:no_event takes no event"),
        (unknown_parameter, None, "a parameter `database` that nobody can fill"),
        (plain, {"a": 1}, "`options` are for the constructor of a class"),
        (7, None, "is a int, which cannot be called"),
        (Paid, {"order_id": ORDER, "amount": 1, "paid_at": PAID.paid_at}, "without a `__call__`"),
    ],
)
def test_a_handler_that_the_daemon_would_not_start_with_is_refused(
    handler: Any, options: Any, problem: str
) -> None:
    with pytest.raises(SettingsError, match=problem):
        run(handler, a_new_event({}), options=options)


async def test_both_kinds_of_handlers_run_inside_an_event_loop() -> None:
    event = a_new_event({"number": 7})

    assert await run_async(asynchronous, event) == Done()
    assert await run_async(typed, event) == Done()
    assert await run_async(fails, event, attempt=5) == DeadLetter(
        DeadReason.MAX_ATTEMPTS, "ValueError: odd"
    )
    invalid = await run_async(asynchronous, a_new_event({}))
    assert isinstance(invalid, DeadLetter)


async def test_the_blocking_form_inside_an_event_loop_names_the_other_one() -> None:
    with pytest.raises(RuntimeError, match=r"use `await run_async\(\.\.\.\)`"):
        run(asynchronous, a_new_event({"number": 7}))

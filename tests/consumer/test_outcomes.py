"""How a message ends, by what its handlers do."""

import asyncio
from typing import Any

import anyio
import msgspec
import pytest

from outboxd import Context, DeadLetter, Done, Event, Reject, Retry, RetryLater
from outboxd.core.messages import Attribute
from outboxd.core.outcomes import DeadReason
from outboxd.ports.consumer_observer import Processed
from tests.consumer.fake_queue import FakeQueue
from tests.consumer.scene import FakeInbox, a_pool, event_body, eventually, loaded, reason


class OrderCreated(msgspec.Struct):
    total: int


async def succeeds(event: Event[Any]) -> None: ...


def succeeds_in_a_thread(event: Event[Any]) -> None: ...


async def says_done(event: Event[Any]) -> Done:
    return Done()


async def rejects(event: Event[Any]) -> None:
    raise Reject("no such customer")


def rejects_in_a_thread(event: Event[Any]) -> DeadLetter:
    return DeadLetter(error="no such customer")


async def asks_for_time(event: Event[Any]) -> Retry:
    return Retry(7)


def asks_for_time_in_a_thread(event: Event[Any]) -> None:
    raise RetryLater(after_seconds=7)


async def fails(event: Event[Any]) -> None:
    raise ValueError("not today")


async def wants_a_total(event: Event[OrderCreated]) -> None:
    assert event.payload.total == 5


@pytest.mark.parametrize(
    ("handler", "ends"),
    [
        (succeeds, "deleted m1"),
        (succeeds_in_a_thread, "deleted m1"),
        (says_done, "deleted m1"),
        (asks_for_time, "hid m1 for 7 s"),
        (asks_for_time_in_a_thread, "hid m1 for 7 s"),
        (fails, "hid m1 for 2 s"),
    ],
)
async def test_a_message_ends_as_its_handler_decides(handler: Any, ends: str) -> None:
    async with a_pool(loaded(handler)) as pool:
        pool.queue.send(event_body())
        await pool.sees(ends)


@pytest.mark.parametrize("handler", [rejects, rejects_in_a_thread])
async def test_a_rejected_message_is_buried_with_its_reason_and_then_deleted(handler: Any) -> None:
    async with a_pool(loaded(handler, "reject")) as pool:
        pool.queue.send(event_body(), {"traceparent": Attribute("String", "00-1")})
        await pool.sees("deleted m1")
    (letter,) = pool.queue.letters
    assert letter.attributes["traceparent"] == Attribute("String", "00-1")
    told = reason(letter.attributes)
    assert told["reason"] == "rejected"
    assert "no such customer" in told["error"]
    assert [h["name"] for h in told["handlers"]] == ["reject"]
    assert told["message_id"] == "m1"
    assert [e.split()[0] for e in pool.queue.history if e[0] in "bd"] == ["buried", "deleted"]


def leaves_the_process(event: Event[Any]) -> None:
    raise SystemExit(0)


async def leaves_the_process_async(event: Event[Any]) -> None:
    raise SystemExit(0)


async def interrupts(event: Event[Any]) -> None:
    raise KeyboardInterrupt


async def raises_cancelled(event: Event[Any]) -> None:
    raise asyncio.CancelledError


def raises_cancelled_in_a_thread(event: Event[Any]) -> None:
    raise asyncio.CancelledError


async def cancels_itself(event: Event[Any]) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


async def cancels_itself_and_waits(event: Event[Any]) -> None:
    await cancels_itself(event)
    await anyio.sleep(30)


async def stops_iteration(event: Event[Any]) -> None:
    raise StopAsyncIteration


def stops_iteration_in_a_thread(event: Event[Any]) -> None:
    raise StopIteration


async def raises_a_group(event: Event[Any]) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fails, event)


def returns(value: object) -> Any:
    def handler(event: Event[Any]) -> object:
        return value

    async def async_handler(event: Event[Any]) -> object:
        return value

    return handler, async_handler


def returns_a_coroutine(event: Event[Any]) -> object:
    return succeeds(event)


class BadText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def raises_bad_text(event: Event[Any]) -> None:
    raise BadText


@pytest.mark.parametrize(
    "handler",
    [
        leaves_the_process,
        leaves_the_process_async,
        interrupts,
        raises_cancelled,
        raises_cancelled_in_a_thread,
        cancels_itself,
        cancels_itself_and_waits,
        stops_iteration,
        stops_iteration_in_a_thread,
        raises_a_group,
        raises_bad_text,
        returns_a_coroutine,
        *returns(False),
        *returns(True),
        *returns("x"),
        *returns(0),
        *returns(Done),
        *returns(DeadLetter("no such reason")),  # type: ignore[arg-type]
        *returns(Retry("soon")),  # type: ignore[arg-type]
    ],
)
async def test_nothing_but_success_deletes_and_the_pool_goes_on(handler: Any) -> None:
    bad = loaded(handler, "bad", event="order.bad")
    good = loaded(succeeds, "good", event="order.good")
    async with a_pool(bad, good, concurrency=1) as pool:
        pool.queue.send(event_body("order.bad"))
        await pool.sees("hid m1 for 2 s")
        for _ in range(3):
            pool.queue.send(event_body("order.good"))
        await eventually(lambda: pool.queue.size == 1)
    assert pool.queue.holds("m1")
    assert ("bad", "error") in pool.observed.retries


async def test_the_last_attempt_ends_in_the_dead_letter_queue() -> None:
    async with a_pool(loaded(fails), inbox=FakeInbox(), max_attempts=3) as pool:
        pool.queue.send(event_body())
        for attempt in (1, 2):
            hidden = f"hid m1 for {2**attempt} s"
            await pool.sees(hidden)
            pool.queue.again("m1")
        await pool.sees("deleted m1")
    (letter,) = pool.queue.letters
    told = reason(letter.attributes)
    assert told["reason"] == "max_attempts"
    assert told["error"] == "ValueError: not today"
    assert told["handlers"][0]["attempts"] == 3
    assert pool.observed.dead == [("fails", "max_attempts")]


async def test_without_a_database_receives_count_as_attempts() -> None:
    seen: list[int] = []

    async def notes_its_attempt(event: Event[Any], context: Context) -> None:
        seen.append(context.attempt)
        raise ValueError

    async with a_pool(loaded(notes_its_attempt), max_attempts=2) as pool:
        pool.queue.send(event_body())
        await pool.sees("hid m1 for 2 s")
        pool.queue.again("m1")
        await eventually(lambda: pool.queue.letters)
    assert seen == [1, 2]


async def test_a_payload_of_another_type_is_poison() -> None:
    async with a_pool(loaded(wants_a_total)) as pool:
        pool.queue.send(event_body(payload={"total": "five"}))
        pool.queue.send(event_body(payload={"total": 5}))
        await eventually(lambda: pool.queue.size == 0)
    (letter,) = pool.queue.letters
    told = reason(letter.attributes)
    assert told["reason"] == "invalid_payload"
    assert "$.total" in told["error"]
    assert pool.observed.poisoned == ["invalid_payload"]


MALFORMED = [
    "",
    "{",
    "[]",
    "null",
    '"text"',
    "\ud800",
    "{}",
    '{"id": "1", "type": "order.created"}',
    '{"id": 1, "type": "order.created", "payload": {}}',
    '{"id": "", "type": "order.created", "payload": {}}',
    '{"id": "1", "type": "order\\u0000", "payload": {}}',
    '{"id": "1", "type": "order.created", "payload": {}, "aggregate_id": "7"}',
    '{"id": "1", "type": "a", "aggregate_type": "a", "aggregate_id": "a", '
    '"occurred_at": "2024-05-01T12:00:00", "payload": 1}',
    '{"id": "1", "type": "a", "payload": ' + "[" * 100_000 + "]" * 100_000 + "}",
]


@pytest.mark.parametrize("body", MALFORMED, ids=lambda body: repr(body[:30]))
async def test_a_malformed_body_hurts_only_itself(body: str) -> None:
    async with a_pool(loaded(succeeds)) as pool:
        for _ in range(3):
            pool.queue.send(event_body())
        bad = pool.queue.send(body)
        for _ in range(3):
            pool.queue.send(event_body())
        await eventually(lambda: pool.queue.size == 0)
    (letter,) = pool.queue.letters
    assert letter.body == body
    told = reason(letter.attributes)
    assert (told["reason"], told["message_id"]) == ("malformed", bad)
    assert pool.observed.count(Processed.OK) == 6


@pytest.mark.parametrize("payload", ["1e999", "9" * 5000, '"\\ud800"', "[" * 2000 + "]" * 2000])
async def test_a_payload_that_cannot_be_decoded_hurts_only_itself(payload: str) -> None:
    async with a_pool(loaded(succeeds)) as pool:
        pool.queue.send('{"id": "1", "type": "order.created", "payload": ' + payload + "}")
        pool.queue.send(event_body())
        await eventually(lambda: pool.queue.size == 0)
    assert pool.observed.count(Processed.OK) >= 1
    assert all(reason(x.attributes)["reason"] in list(DeadReason) for x in pool.queue.letters)


async def test_poison_beside_a_hundred_good_messages_drags_none_along() -> None:
    done: list[str] = []

    async def handler(event: Event[Any]) -> None:
        if event.type == "order.rejected":
            raise Reject("never")
        if event.type == "order.failing":
            raise ValueError("always")
        done.append(str(event.id))

    async with a_pool(loaded(handler), inbox=FakeInbox(), max_attempts=1) as pool:
        for number in range(100):
            pool.queue.send(event_body())
            if number % 25 == 0:
                pool.queue.send("{")
                pool.queue.send(event_body("order.rejected"))
                pool.queue.send(event_body("order.failing"))
                pool.queue.send(event_body("unknown"))
        await eventually(lambda: pool.queue.size == 0)
    assert len(set(done)) == len(done) == 100
    reasons = sorted(reason(letter.attributes)["reason"] for letter in pool.queue.letters)
    assert reasons == sorted(["malformed", "rejected", "max_attempts", "unknown_type"] * 4)
    assert pool.extender.tokens_held() == set()


@pytest.mark.parametrize(
    ("policy", "ends"), [("drop", "deleted m1"), ("dead_letter", "deleted m1"), ("retry", "hid m1")]
)
async def test_an_unknown_type_meets_the_queues_policy(policy: str, ends: str) -> None:
    async with a_pool(loaded(succeeds), on_unknown_type=policy) as pool:
        pool.queue.send(event_body("invoice.created"))
        await eventually(lambda: any(e.startswith(ends) for e in pool.queue.history))
    assert len(pool.queue.letters) == (policy == "dead_letter")
    assert [outcome for _, outcome in pool.observed.processed_by] == ["no_handler"]


async def test_an_unknown_type_is_retried_until_attempts_run_out() -> None:
    async with a_pool(loaded(succeeds), on_unknown_type="retry", max_attempts=2) as pool:
        pool.queue.send(event_body("invoice.created"))
        await pool.sees("hid m1 for 2 s")
        pool.queue.again("m1")
        await eventually(lambda: pool.queue.letters)
    assert reason(pool.queue.letters[0].attributes)["reason"] == "unknown_type"


async def test_an_async_handler_is_cancelled_when_its_time_is_over() -> None:
    cancelled = anyio.Event()

    async def sleeps(event: Event[Any]) -> None:
        try:
            await anyio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with a_pool(loaded(sleeps, timeout_seconds=0.05)) as pool:
        pool.queue.send(event_body())
        await pool.sees("hid m1 for 2 s")
    assert cancelled.is_set()
    assert pool.observed.retries == [("sleeps", "timeout")]


async def test_a_handler_that_swallows_its_timeout_has_not_succeeded() -> None:
    async def swallows(event: Event[Any]) -> None:
        try:
            await anyio.sleep(60)
        except asyncio.CancelledError:
            return

    async with a_pool(loaded(swallows, timeout_seconds=0.05), max_attempts=1) as pool:
        pool.queue.send(event_body())
        await eventually(lambda: pool.queue.letters)
    assert reason(pool.queue.letters[0].attributes)["reason"] == "timeout"


async def test_several_handlers_with_different_ends_make_one_letter() -> None:
    """One succeeds, one is rejected, one succeeds late: each is called only while it is pending."""
    calls: list[str] = []
    late = 0

    async def fine(event: Event[Any]) -> None:
        calls.append("fine")

    async def rejected(event: Event[Any]) -> None:
        calls.append("rejected")
        raise Reject("never")

    async def third_time(event: Event[Any]) -> None:
        nonlocal late
        late += 1
        if late < 3:
            raise ValueError("not yet")
        calls.append("late")

    inbox = FakeInbox()
    handlers = [loaded(fine), loaded(rejected), loaded(third_time)]
    async with a_pool(*handlers, inbox=inbox) as pool:
        pool.queue.send(event_body())
        for attempt in (1, 2):
            hidden = f"hid m1 for {2**attempt} s"
            await pool.sees(hidden)
            assert not pool.queue.letters
            pool.queue.again("m1")
        await eventually(lambda: pool.queue.size == 0)
    (letter,) = pool.queue.letters
    told = reason(letter.attributes)
    assert [(h["name"], h["reason"]) for h in told["handlers"]] == [("rejected", "rejected")]
    assert calls.count("rejected") == 1
    assert calls.count("late") == 1


async def test_two_dead_handlers_stand_in_one_letter() -> None:
    async def first(event: Event[Any]) -> None:
        raise Reject("one")

    async def second(event: Event[Any]) -> None:
        raise ValueError("two")

    async with a_pool(loaded(first), loaded(second), max_attempts=1) as pool:
        pool.queue.send(event_body())
        await eventually(lambda: pool.queue.size == 0)
    (letter,) = pool.queue.letters
    told = reason(letter.attributes)["handlers"]
    assert [(h["name"], h["reason"]) for h in told] == [
        ("first", "rejected"),
        ("second", "max_attempts"),
    ]


async def test_the_context_tells_what_the_handler_may_rely_on() -> None:
    seen: list[Context] = []

    async def handler(event: Event[Any], context: Context) -> None:
        seen.append(context)
        assert 0 < context.seconds_left() <= 30
        assert context.idempotency_key == f"{event.id}:handler"
        with pytest.raises(Exception, match="no transaction"):
            context.publish(None)  # type: ignore[arg-type]

    async with a_pool(loaded(handler)) as pool:
        pool.queue.send(event_body())
        await eventually(lambda: pool.queue.size == 0)
    assert seen[0].attempt == 1
    assert seen[0].queue == "orders"


async def test_the_fake_queue_is_empty_at_the_end() -> None:
    queue = FakeQueue()
    async with a_pool(loaded(succeeds), queue=queue) as pool:
        for _ in range(50):
            queue.send(event_body())
        await eventually(lambda: queue.size == 0)
    assert pool.progress.in_flight == 0
    assert pool.progress.oldest_started_at is None
    assert pool.extender.tokens_held() == set()

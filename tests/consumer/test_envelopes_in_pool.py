"""A handler behind SNS and EventBridge runs as if there were neither."""

import json
from typing import Any
from uuid import uuid4

from outboxd import Context, Event
from outboxd.core.messages import Attribute
from tests.consumer.scene import a_pool, event_body, eventually, loaded, reason
from tests.core.envelope_roads import eventbridge, sns

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def test_a_handler_sees_the_same_event_and_its_trace() -> None:
    seen: list[tuple[Event[Any], str | None]] = []

    async def handler(event: Event[Any], context: Context) -> None:
        seen.append((event, context.traceparent))

    body = event_body("order.paid", {"total": 5}, uuid4())
    forwarded = sns(eventbridge(json.loads(body) | {"traceparent": TRACE}))
    async with a_pool(loaded(handler)) as pool:
        pool.queue.send(body, {"traceparent": Attribute("String", TRACE)})
        pool.queue.send(json.dumps(forwarded))
        await eventually(lambda: pool.queue.size == 0)
    first, second = seen
    assert first == second
    assert first[1] == TRACE


async def test_what_cannot_be_opened_is_dead_lettered_with_the_place() -> None:
    async def handler(event: Event[Any]) -> None: ...

    async with a_pool(loaded(handler)) as pool:
        pool.queue.send(json.dumps(sns(eventbridge({"id": "1"}, "order.paid", time="noon"))))
        await eventually(lambda: pool.queue.size == 0)
    (letter,) = pool.queue.letters
    told = reason(letter.attributes)
    assert told["reason"] == "malformed"
    assert "$.time" in told["error"]
    assert "in an SNS notification" in told["error"]

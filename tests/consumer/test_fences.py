"""A bug of outboxd's own hurts one message, not the pool."""

from collections.abc import Sequence
from typing import Any

import pytest

from outboxd import Event
from outboxd.core.envelopes import Incoming, open_envelope
from outboxd.core.judging import Ending, Returned
from outboxd.core.messages import ReceivedMessage
from outboxd.core.outcomes import Done
from outboxd.ports.consumer_observer import Processed
from outboxd.ports.handling import BatchEnding, Call
from tests.consumer.scene import a_pool, event_body, eventually, loaded


class BuggyRunner:
    """Raises where it promised to return an ending."""

    async def run_batch(self, handler: str, calls: Sequence[Call]) -> BatchEnding:
        raise NotImplementedError

    def interruptible(self, handler: str) -> bool:
        return True

    async def run(self, handler: str, call: Call) -> Ending:
        if call.incoming.type == "order.bad":
            raise RuntimeError("a bug")
        return Returned(Done())


@pytest.mark.parametrize("bad", ["order.bad", "order.unreadable"])
async def test_a_bug_keeps_its_message_and_the_pool_goes_on(
    bad: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def buggy(message: ReceivedMessage) -> Incoming:
        if "order.unreadable" in message.body:
            raise RuntimeError("a bug")
        return open_envelope(message)

    async def handler(event: Event[Any]) -> None: ...

    monkeypatch.setattr("outboxd.actors.consumer.intake.open_envelope", buggy)
    async with a_pool(loaded(handler), runner=BuggyRunner(), concurrency=1) as pool:
        pool.queue.send(event_body(bad))
        for _ in range(5):
            pool.queue.send(event_body())
        await eventually(lambda: pool.observed.count(Processed.OK) == 5)
        await pool.sees("hid m1 for 5 s")
    assert pool.observed.retries == [("", "bug")]
    assert pool.progress.in_flight == 0

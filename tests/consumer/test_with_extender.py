"""The real consumer and the real extender on the local SQS, joined as the supervisor joins them."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from uuid import uuid4

import anyio
import boto3
import pytest
from prometheus_client import CollectorRegistry

from outboxd import Event
from outboxd.actors.consumer import Consumer
from outboxd.actors.extender import Extender, ExtenderSettings
from outboxd.adapters.handlers import LoadedHandler, Runner
from outboxd.adapters.metrics.extender import ExtenderMetrics
from outboxd.adapters.receive_counts import ReceiveCounts
from outboxd.adapters.sqs.queue import consumer_queue
from outboxd.adapters.sqs.visibility import extender_visibility
from outboxd.channels.mailbox import Counterpart, open_mailbox
from outboxd.channels.protocol import Drain, ExtenderUp, Forget, Forgotten, Hold, LeaseLost, Settled
from outboxd.core.clock import boottime
from outboxd.core.messages import ReceivedMessage
from outboxd.core.settings import AwsSettings, BackoffSettings, Settings
from outboxd.localaws.server import local_aws
from outboxd.ports.consumer_observer import Processed
from outboxd.ports.progress import Progress
from outboxd.ports.queue import Hiding, Queue, Refusal
from outboxd.testing.faults import FaultScript
from tests.consumer.scene import (
    OWNER,
    FakeSuspects,
    Observed,
    event_body,
    eventually,
    loaded,
    queue_settings,
)


class Scene:
    def __init__(self, client: Any, url: str, endpoint_url: str, queue: Queue) -> None:
        self._client = client
        self._url = url
        self.endpoint_url = endpoint_url
        self.queue = Watched(queue)
        self.observed = Observed()
        self.frames: list[str] = []

    async def send(self, body: str, group: str = "") -> None:
        fifo = {"MessageGroupId": group, "MessageDeduplicationId": uuid4().hex} if group else {}
        await self._call(
            lambda: self._client.send_message(QueueUrl=self._url, MessageBody=body, **fifo)
        )

    async def counts(self) -> tuple[int, int]:
        """Visible, and in flight."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        answer = await self._call(
            lambda: self._client.get_queue_attributes(QueueUrl=self._url, AttributeNames=names)
        )
        visible, in_flight = (int(answer["Attributes"][name]) for name in names)
        return visible, in_flight

    async def _call(self, call: Any) -> Any:
        return await anyio.to_thread.run_sync(call)


@asynccontextmanager
async def a_scene(
    handler: LoadedHandler, name: str = "orders", **changes: Any
) -> AsyncIterator[Scene]:
    async with local_aws() as endpoint_url:
        client = boto3.session.Session().client(
            "sqs", region_name="us-east-1", endpoint_url=endpoint_url
        )
        attributes: Any = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
        created = await anyio.to_thread.run_sync(
            lambda: client.create_queue(QueueName=name, Attributes=attributes)
        )
        queue = queue_settings([handler], queue_name=name, **changes)
        settings = Settings(aws=AwsSettings(endpoint_url=endpoint_url), queues={"orders": queue})
        orders = consumer_queue(settings, "orders")
        scene = Scene(client, created["QueueUrl"], endpoint_url, orders)
        async with _running(scene, settings, handler):
            yield scene


@asynccontextmanager
async def _running(scene: Scene, settings: Settings, handler: LoadedHandler) -> AsyncIterator[None]:
    mailbox, to_consumer = open_mailbox()
    extender_mailbox, to_extender = open_mailbox()
    consumer = Consumer(
        "orders",
        settings.queues["orders"],
        address=OWNER,
        mailbox=mailbox,
        queue=scene.queue,
        runner=Runner([handler], concurrency=4),
        inbox=ReceiveCounts(),
        suspects=FakeSuspects(),
        progress=Progress(),
        observer=scene.observed,
    )
    extender = Extender(
        extender_visibility(settings, 2),
        ExtenderSettings(),
        ExtenderMetrics(CollectorRegistry(), settings.queues),
        Progress(),
        extender_mailbox,
    )
    consumed = anyio.Event()

    async def consume() -> None:
        await consumer.run()
        consumed.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_carry, scene, to_consumer, to_extender)
        tasks.start_soon(_carry, scene, to_extender, to_consumer)
        tasks.start_soon(extender.run)
        tasks.start_soon(consume)
        await to_consumer.tell(ExtenderUp())
        yield
        await to_consumer.tell(Drain(boottime() + 10))
        with anyio.fail_after(12):
            await consumed.wait()
        tasks.cancel_scope.cancel()
    for end in (mailbox, extender_mailbox, to_consumer, to_extender):
        end.close()


async def _carry(scene: Scene, source: Counterpart, target: Counterpart) -> None:
    while True:
        message = await source.heard()
        scene.frames.append(type(message).__name__)
        if isinstance(message, Hold | Forget | Settled | Forgotten | LeaseLost):
            await target.tell(message)


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


async def test_a_handler_that_outlives_the_visibility_timeout_runs_once() -> None:
    runs: list[int] = []

    async def slow(event: Event[Any]) -> None:
        runs.append(1)
        await anyio.sleep(5)

    async with a_scene(loaded(slow), visibility_seconds=2) as scene:
        await scene.send(event_body())
        await eventually(lambda: scene.observed.processed_by, 15)
    assert runs == [1]
    assert "LeaseLost" not in scene.frames


async def test_a_backoff_is_not_overwritten_by_an_extension() -> None:
    """The handler fails while its lease is being extended."""
    calls: list[float] = []

    async def fails_once(event: Event[Any]) -> None:
        calls.append(anyio.current_time())
        if len(calls) == 1:
            await anyio.sleep(1.05)
            raise ValueError

    async with a_scene(
        loaded(fails_once),
        visibility_seconds=2,
        backoff=BackoffSettings(first_seconds=1),
        max_attempts=5,
    ) as scene:
        await scene.send(event_body())
        await eventually(lambda: len(calls) == 2, 15)
    assert calls[1] - calls[0] < 1.05 + 1 + 2
    assert "Forgotten" in scene.frames


async def test_many_messages_leave_nothing_behind() -> None:
    async def quick(event: Event[Any]) -> None: ...

    async with a_scene(loaded(quick)) as scene:
        for _ in range(40):
            await scene.send(event_body())
        await eventually(lambda: len(scene.observed.processed_by) == 40, 20)
    assert scene.observed.deletes_failed == []


async def test_followers_keep_their_leases_while_they_wait_for_their_head() -> None:
    """A group of five, each as long as half of the visibility timeout, at five to a receive."""
    ran: list[object] = []

    async def handler(event: Event[Any]) -> None:
        await anyio.sleep(1)
        ran.append(event.payload)

    async with a_scene(
        loaded(handler), name="orders.fifo", visibility_seconds=2, concurrency=5
    ) as scene:
        for number in range(5):
            await scene.send(event_body(payload=number), group="one")
        await eventually(lambda: len(ran) == 5, 20)
        await eventually(lambda: scene.observed.count(Processed.OK) == 5)
        assert "LeaseLost" not in scene.frames
        with anyio.fail_after(10):
            while await scene.counts() != (0, 0):  # noqa: ASYNC110 - the server tells nobody
                await anyio.sleep(0.05)
    assert ran == list(range(5))


class Watched:
    """A queue that notes when it has accepted which backoff."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._bodies: dict[str, str] = {}
        self.accepted: dict[str, float] = {}

    async def receive(self, limit: int, wait_seconds: int) -> Sequence[ReceivedMessage]:
        messages = await self._queue.receive(limit, wait_seconds)
        self._bodies.update({m.receipt_handle: json.loads(m.body)["payload"] for m in messages})
        return messages

    async def hide(self, hidings: Sequence[Hiding]) -> Sequence[Refusal]:
        refusals = await self._queue.hide(hidings)
        assert refusals == []
        for hiding in hidings:
            self.accepted[self._bodies[hiding.receipt_handle]] = boottime()
        return refusals

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


@pytest.mark.system
@pytest.mark.timeout(180)
async def test_slow_calls_and_a_due_extension_do_not_shift_a_backoff() -> None:
    """An extension that reaches SQS after the backoff would hide the message for its whole timeout,
    and one that is only slow must not let it come back early."""
    redelivered: dict[str, float] = {}
    seen: set[str] = set()

    async def fails_when_an_extension_is_due(event: Event[Any]) -> None:
        name = event.payload
        if name in seen:
            redelivered[name] = boottime()
            return
        seen.add(name)
        # At half of the visibility timeout the extender calls, and its calls take a second.
        await anyio.sleep(2.6 + (int(name) % 10) / 10)
        raise RuntimeError("not yet")

    def have_come(count: int) -> bool:
        return len(redelivered) == count

    async with a_scene(
        loaded(fails_when_an_extension_is_due),
        visibility_seconds=6,
        concurrency=20,
        backoff=BackoffSettings(first_seconds=2, jitter="none"),
        max_attempts=5,
    ) as scene:
        script = FaultScript(scene.endpoint_url)
        # In a thread: the server runs in this event loop.
        await anyio.to_thread.run_sync(
            lambda: script.slow("ChangeMessageVisibilityBatch", seconds=1)
        )
        for wave in range(10):  # so that none has to wait for a free slot
            for number in range(20 * wave, 20 * wave + 20):
                await scene.send(event_body(payload=str(number)))
            await eventually(partial(have_come, 20 * wave + 20), 30)
        await eventually(lambda: scene.observed.count(Processed.OK) == 200)
    assert len(scene.queue.accepted) == 200
    waits = [redelivered[name] - scene.queue.accepted[name] for name in redelivered]
    assert min(waits) >= 2.0 - 0.05, "the answer comes a moment after the acceptance"
    assert max(waits) <= 5.0

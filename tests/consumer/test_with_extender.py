"""The real consumer and the real extender on the local SQS, joined as the supervisor joins them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

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
from outboxd.core.settings import AwsSettings, Settings
from outboxd.localaws.server import local_aws
from outboxd.ports.progress import Progress
from tests.consumer.scene import OWNER, Observed, event_body, eventually, loaded, queue_settings


class Scene:
    def __init__(self, client: Any, url: str) -> None:
        self._client = client
        self._url = url
        self.observed = Observed()
        self.frames: list[str] = []

    async def send(self, body: str) -> None:
        await self._call(lambda: self._client.send_message(QueueUrl=self._url, MessageBody=body))

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
async def a_scene(handler: LoadedHandler, **changes: Any) -> AsyncIterator[Scene]:
    async with local_aws() as endpoint_url:
        client = boto3.session.Session().client(
            "sqs", region_name="us-east-1", endpoint_url=endpoint_url
        )
        created = await anyio.to_thread.run_sync(lambda: client.create_queue(QueueName="orders"))
        queue = queue_settings([handler], **changes)
        settings = Settings(aws=AwsSettings(endpoint_url=endpoint_url), queues={"orders": queue})
        scene = Scene(client, created["QueueUrl"])
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
        queue=consumer_queue(settings, "orders"),
        runner=Runner([handler], concurrency=4),
        inbox=ReceiveCounts(),
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
        loaded(fails_once), visibility_seconds=2, backoff_first_seconds=1, max_attempts=5
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

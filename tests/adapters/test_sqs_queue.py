"""The queue port's promises, kept by the fake of the consumer's tests and by the real adapter."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, Protocol

import anyio
import boto3
import pytest

from outboxd.adapters.sqs.queue import _packs, _refusals, consumer_queue
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.letters import Letter
from outboxd.core.messages import Attribute
from outboxd.core.settings import AwsSettings, QueueSettings, Settings
from outboxd.localaws.server import local_aws
from outboxd.ports.queue import Hiding, Queue
from tests.consumer.fake_queue import FakeQueue


class Backend(Protocol):
    """A queue under test, and how to put messages into it and look at the other one."""

    queue: Queue

    async def send(self, body: str, attributes: dict[str, Attribute] | None = None) -> None: ...

    async def letters(self) -> list[tuple[str, set[str]]]: ...


class Fake:
    def __init__(self) -> None:
        self.queue: Queue = FakeQueue()

    async def send(self, body: str, attributes: dict[str, Attribute] | None = None) -> None:
        assert isinstance(self.queue, FakeQueue)
        self.queue.send(body, attributes)

    async def letters(self) -> list[tuple[str, set[str]]]:
        assert isinstance(self.queue, FakeQueue)
        return [(letter.body, set(letter.attributes)) for letter in self.queue.letters]


class Real:
    """The adapter against the local stand-in."""

    def __init__(self, endpoint_url: str) -> None:
        self.client = boto3.session.Session().client(
            "sqs", region_name="us-east-1", endpoint_url=endpoint_url
        )
        self.settings = Settings(
            aws=AwsSettings(endpoint_url=endpoint_url),
            queues={"orders": QueueSettings(queue_name="shop-orders", wait_seconds=0)},
        )
        self.calls: list[tuple[str, str]] = []
        self.queue: Queue = consumer_queue(
            self.settings, "orders", lambda op, result, _: self.calls.append((op, result))
        )

    async def create(self) -> None:
        for name in ("shop-orders", "shop-orders-dlq"):
            await self._call(partial(self.client.create_queue, QueueName=name))

    async def send(self, body: str, attributes: dict[str, Attribute] | None = None) -> None:
        values: dict[str, Any] = {
            name: {
                "DataType": a.data_type,
                "BinaryValue" if isinstance(a.value, bytes) else "StringValue": a.value,
            }
            for name, a in (attributes or {}).items()
        }
        url = await self._url("shop-orders")
        await self._call(
            lambda: self.client.send_message(
                QueueUrl=url, MessageBody=body, MessageAttributes=values
            )
        )

    async def letters(self) -> list[tuple[str, set[str]]]:
        url = await self._url("shop-orders-dlq")
        answer = await self._call(
            lambda: self.client.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
            )
        )
        return [(m["Body"], set(m["MessageAttributes"])) for m in answer.get("Messages", [])]

    async def _url(self, name: str) -> str:
        answer = await self._call(lambda: self.client.get_queue_url(QueueName=name))
        return str(answer["QueueUrl"])

    async def _call(self, call: Callable[[], Any]) -> Any:
        return await anyio.to_thread.run_sync(call)


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


@pytest.fixture
async def real() -> AsyncIterator[Real]:
    async with local_aws() as endpoint_url:
        backend = Real(endpoint_url)
        await backend.create()
        yield backend


@pytest.fixture(params=["fake", "real"])
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
    if request.param == "fake":
        yield Fake()
        return
    async with local_aws() as endpoint_url:
        backend = Real(endpoint_url)
        await backend.create()
        yield backend


async def test_what_is_received_is_what_was_sent(backend: Backend) -> None:
    attributes = {
        "event_type": Attribute("String", "order.paid"),
        "count": Attribute("Number", "7"),
        "raw": Attribute("Binary", b"\x00\xff"),
    }
    await backend.send('{"a": "é"}', attributes)
    (message,) = await backend.queue.receive(10, 0)
    assert message.body == '{"a": "é"}'
    assert message.attributes == attributes
    assert message.receive_count == 1
    assert message.sent_at > 1_600_000_000
    assert message.message_id
    assert message.receipt_handle


async def test_an_empty_queue_gives_nothing(backend: Backend) -> None:
    assert await backend.queue.receive(10, 0) == []


async def test_a_received_message_is_hidden_until_it_is_released(backend: Backend) -> None:
    await backend.send("one")
    (message,) = await backend.queue.receive(10, 0)
    assert await backend.queue.receive(10, 0) == []
    assert await backend.queue.hide([Hiding(message.receipt_handle, 0)]) == []
    (again,) = await backend.queue.receive(10, 0)
    assert (again.message_id, again.receive_count) == (message.message_id, 2)
    assert again.receipt_handle != message.receipt_handle


async def test_a_deleted_message_is_gone(backend: Backend) -> None:
    for number in range(10):
        await backend.send(str(number))
    messages = await backend.queue.receive(10, 0)
    assert await backend.queue.delete([m.receipt_handle for m in messages]) == []
    depth = await backend.queue.depth()
    assert (depth.visible, depth.in_flight, depth.delayed) == (0, 0, 0)


async def test_no_more_is_received_than_was_asked_for(backend: Backend) -> None:
    for number in range(5):
        await backend.send(str(number))
    assert len(await backend.queue.receive(3, 0)) <= 3


async def test_hiding_what_is_no_longer_ours_is_refused_for_good(backend: Backend) -> None:
    await backend.send("one")
    await backend.send("two")
    first, second = await backend.queue.receive(10, 0)
    await backend.queue.hide([Hiding(first.receipt_handle, 0)])
    refusals = await backend.queue.hide(
        [Hiding(second.receipt_handle, 30), Hiding(first.receipt_handle, 30)]
    )
    assert [(r.index, r.permanent) for r in refusals] == [(1, True)]


async def test_letters_arrive_with_their_attributes(backend: Backend) -> None:
    attributes = {"outboxd": Attribute("String", "{}"), "raw": Attribute("Binary", b"\x01")}
    assert await backend.queue.bury([Letter("body", attributes), Letter("other", attributes)]) == []
    assert sorted(await backend.letters()) == [
        ("body", {"outboxd", "raw"}),
        ("other", {"outboxd", "raw"}),
    ]


async def test_the_depth_counts_both_queues(backend: Backend) -> None:
    await backend.send("one")
    await backend.send("two")
    await backend.queue.receive(1, 0)
    await backend.queue.bury([Letter("letter", {"outboxd": Attribute("String", "{}")})])
    depth = await backend.queue.depth()
    assert (depth.visible, depth.in_flight, depth.dead_letters) == (1, 1, 1)


async def test_letters_too_large_for_one_call_go_in_several(real: Real) -> None:
    letters = [Letter(str(n) * 400_000, {"n": Attribute("String", "1")}) for n in range(5)]
    assert await real.queue.bury(letters) == []
    assert [result for op, result in real.calls if op == "send"] == ["ok"] * 3


async def test_a_letter_that_sqs_refuses_is_told_apart(real: Real) -> None:
    good = Letter("good", {"n": Attribute("String", "1")})
    bad = Letter("bad", {"n": Attribute("Nonsense", "1")})
    try:
        refusals = await real.queue.bury([good, bad])
    except Unavailable:
        return  # SQS may also refuse the call as a whole; then nothing was sent
    assert [(r.index, r.permanent) for r in refusals] == [(1, True)]


async def test_every_call_is_timed_and_lookups_happen_once(real: Real) -> None:
    await real.queue.receive(1, 0)
    await real.queue.receive(1, 0)
    assert real.calls == [("lookup", "ok"), ("receive", "ok"), ("receive", "ok")]


async def test_a_missing_queue_is_an_outage_that_says_so(real: Real) -> None:
    missing = Settings(
        aws=real.settings.aws, queues={"orders": QueueSettings(queue_name="nowhere")}
    )
    with pytest.raises(Unavailable, match="nowhere") as error:
        await consumer_queue(missing, "orders").receive(1, 0)
    assert error.value.kind is OutageKind.MISSING


async def test_a_closed_port_is_an_outage() -> None:
    closed = Settings(
        aws=AwsSettings(endpoint_url="http://127.0.0.1:1"), queues={"orders": QueueSettings()}
    )
    with pytest.raises(Unavailable) as error:
        await consumer_queue(closed, "orders").delete(["r"])
    assert error.value.kind is OutageKind.UNREACHABLE


def test_an_entry_of_which_nothing_is_said_is_not_confirmed() -> None:
    answer = {
        "Successful": [{"Id": "0"}],
        "Failed": [
            {"Id": "2", "Code": "InternalError", "SenderFault": False},
            {"Id": "3", "Code": "ReceiptHandleIsInvalid", "SenderFault": True},
            {"Id": "4", "Code": "RequestThrottled", "SenderFault": True},
        ],
    }
    refusals = [(r.index, r.permanent) for r in _refusals(answer, 5)]
    assert refusals == [(1, False), (2, False), (3, True), (4, False)]


def test_letters_are_packed_by_bytes_and_count() -> None:
    small = [Letter("x", {})] * 25
    assert [len(pack) for _, pack in _packs(small)] == [10, 10, 5]
    large = [Letter("x" * 600_000, {})] * 3
    assert [(start, len(pack)) for start, pack in _packs(large)] == [(0, 1), (1, 1), (2, 1)]
    assert list(_packs([])) == []

"""The visibility port over boto3, against three independent servers."""

import socket
import time
from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import anyio
import boto3
import pytest
from botocore.exceptions import ClientError
from prometheus_client import CollectorRegistry

from outboxd.actors.extender import Extender, ExtenderSettings
from outboxd.adapters.metrics.extender import ExtenderMetrics
from outboxd.adapters.sqs.visibility import SqsVisibility, extender_visibility
from outboxd.channels.mailbox import open_mailbox
from outboxd.channels.protocol import Drain, Hold, Lease, OwnerGone, Ready, Settled
from outboxd.core.clock import boottime
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.settings import AwsSettings, QueueSettings, Settings
from outboxd.ports.progress import Progress
from outboxd.ports.visibility import Extended, Failed, Lost, Timeout
from tests.emulators import EMULATORS
from tests.extender.scene import POOL

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient
    from types_boto3_sqs.type_defs import MessageTypeDef

_numbers = count(1)


@pytest.fixture(scope="module", params=EMULATORS)
def endpoint(request: pytest.FixtureRequest) -> Iterator[str]:
    with EMULATORS[request.param]() as endpoint:
        yield endpoint


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


class Orders(NamedTuple):
    """A queue that is called `orders` in the configuration and something else in SQS."""

    sqs: "SQSClient"
    url: str
    visibility: SqsVisibility

    def receive(self, visibility_seconds: int) -> list["MessageTypeDef"]:
        answer = self.sqs.receive_message(
            QueueUrl=self.url, MaxNumberOfMessages=10, VisibilityTimeout=visibility_seconds
        )
        return answer.get("Messages", [])

    def received(self, messages: int, visibility_seconds: int = 60) -> list[str]:
        """Receipt handles of so many messages that have just been sent."""
        for number in range(messages):
            self.sqs.send_message(QueueUrl=self.url, MessageBody=f"order {number}")
        handles: list[str] = []
        while len(handles) < messages:
            handles += [each["ReceiptHandle"] for each in self.receive(visibility_seconds)]
        return handles


def settings_for(endpoint: str, **queues: QueueSettings) -> Settings:
    aws = AwsSettings(endpoint_url=endpoint, connect_timeout_seconds=0.5, read_timeout_seconds=5)
    return Settings(aws=aws, queues=dict(queues))


@pytest.fixture
def orders(endpoint: str) -> Iterator[Orders]:
    sqs = boto3.client("sqs", region_name="us-east-1", endpoint_url=endpoint)
    name = f"orders-in-sqs-{next(_numbers)}"
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    settings = settings_for(endpoint, orders=QueueSettings(queue_name=name))
    visibility = extender_visibility(settings, calls_per_queue=2)
    yield Orders(sqs, url, visibility)
    visibility.close()
    sqs.close()


async def test_an_extended_message_stays_invisible(orders: Orders) -> None:
    [handle] = orders.received(1, visibility_seconds=1)

    assert await orders.visibility.change("orders", [Timeout(handle, 60)]) == [Extended()]

    await anyio.sleep(1.3)  # longer than the message would have stayed invisible
    assert orders.receive(1) == []


async def test_a_message_that_is_given_back_is_visible_at_once(orders: Orders) -> None:
    handles = orders.received(10)

    results = await orders.visibility.change("orders", [Timeout(handle, 0) for handle in handles])

    assert results == [Extended()] * 10
    again: list[object] = []
    while len(again) < 10:
        again += orders.receive(60)


async def test_one_bad_receipt_among_good_ones_is_the_only_one_lost(orders: Orders) -> None:
    first, last = orders.received(2)

    results = await orders.visibility.change(
        "orders", [Timeout(first, 60), Timeout("no receipt handle", 60), Timeout(last, 60)]
    )

    assert [type(result) for result in results] == [Extended, Lost, Extended]


async def test_a_missing_queue_is_an_outage(orders: Orders) -> None:
    with pytest.raises(Unavailable, match="does not exist") as caught:
        await orders.visibility.change("nowhere", [Timeout("handle", 60)])

    assert caught.value.kind is OutageKind.MISSING


async def test_nobody_at_the_other_end_is_an_outage() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{probe.getsockname()[1]}"
        visibility = extender_visibility(settings_for(endpoint, orders=QueueSettings()), 1)
        with pytest.raises(Unavailable) as caught:
            await visibility.change("orders", [Timeout("handle", 60)])
        visibility.close()

    assert caught.value.kind is OutageKind.UNREACHABLE


async def test_a_server_that_never_answers_costs_a_quarter_of_the_shortest_timeout() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        queues = {"orders": QueueSettings(visibility_seconds=4), "mails": QueueSettings()}
        visibility = extender_visibility(settings_for(endpoint, **queues), 1)
        started = time.monotonic()
        with pytest.raises(Unavailable) as caught:
            await visibility.change("orders", [Timeout("handle", 60)])
        visibility.close()

    assert caught.value.kind is OutageKind.TIMEOUT
    assert 0.9 < time.monotonic() - started < 4


async def test_a_lease_is_kept_beyond_its_timeout_and_given_back_when_its_owner_dies(
    orders: Orders,
) -> None:
    received_at = boottime()
    [handle] = orders.received(1, visibility_seconds=2)
    lease = Lease(1, "orders", "m", handle, received_at, 2, received_at + 600)
    mailbox, counterpart = open_mailbox()
    registry = CollectorRegistry()
    observer = ExtenderMetrics(registry, ["orders"])
    extender = Extender(orders.visibility, ExtenderSettings(), observer, Progress(), mailbox)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(extender.run)
        await counterpart.tell(Hold(POOL, (lease,)))
        while boottime() < received_at + 3.2:
            assert orders.receive(60) == []
            await anyio.sleep(0.3)
        await counterpart.tell(OwnerGone(POOL, "signal"))
        await counterpart.tell(Drain(boottime() + 20))
    heard = [await counterpart.heard() for _ in range(2)]
    mailbox.close()
    counterpart.close()

    assert heard == [Ready(), Settled(POOL, (1,))]
    assert len(orders.receive(60)) == 1
    assert registry.get_sample_value("outboxd_visibility_lost_total", {"queue": "orders"}) == 0


def failure(id_: str, code: str, *, sender: bool) -> dict[str, Any]:
    return {"Id": id_, "Code": code, "SenderFault": sender, "Message": "as scripted"}


def scripted(answer: dict[str, Any] | ClientError) -> tuple[SqsVisibility, list[dict[str, Any]]]:
    """The adapter over a client that gives this answer, and the entries that it was sent."""
    sent: list[dict[str, Any]] = []

    def change(**request: Any) -> dict[str, Any]:
        sent.extend(request["Entries"])
        if isinstance(answer, ClientError):
            raise answer
        return answer

    client = SimpleNamespace(
        change_message_visibility_batch=change,
        get_queue_url=lambda QueueName: {"QueueUrl": f"http://sqs/{QueueName}"},  # noqa: N803
    )
    return SqsVisibility(cast("SQSClient", client), {}, threads=1), sent


async def test_an_entry_is_extended_only_if_sqs_says_so() -> None:
    visibility, _ = scripted(
        {
            "Successful": [{"Id": "0"}],
            "Failed": [
                failure("1", "ReceiptHandleIsInvalid", sender=True),
                failure("2", "InternalError", sender=False),
                failure("3", "RequestThrottled", sender=True),
            ],
        }
    )

    assert await visibility.change("orders", [Timeout("h", 60)] * 5) == [
        Extended(),
        Lost("ReceiptHandleIsInvalid"),
        Failed("InternalError"),
        Failed("RequestThrottled"),
        Failed("unconfirmed"),
    ]


async def test_entries_are_told_apart_by_position_since_a_message_may_come_twice() -> None:
    visibility, sent = scripted({"Successful": []})

    await visibility.change("orders", [Timeout("same", 60), Timeout("same", 0)])

    assert sent == [
        {"Id": "0", "ReceiptHandle": "same", "VisibilityTimeout": 60},
        {"Id": "1", "ReceiptHandle": "same", "VisibilityTimeout": 0},
    ]


async def test_a_throttled_call_is_an_outage_of_that_kind() -> None:
    visibility, _ = scripted(
        ClientError({"Error": {"Code": "RequestThrottled", "Message": "slow down"}}, "Change")
    )

    with pytest.raises(Unavailable) as caught:
        await visibility.change("orders", [Timeout("h", 60)])
    assert caught.value.kind is OutageKind.THROTTLED
